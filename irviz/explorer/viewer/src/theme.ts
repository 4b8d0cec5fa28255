// Light or dark: as the notebook is, else as the system is.

import type { State } from "./state";

/** Follow the theme until the function that is returned is called. */
export function followTheme(state: State): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => {
    const { jpThemeLight, theme } = document.body.dataset; // of JupyterLab, and of marimo
    const isVsCode = /\bvscode-(dark|light)\b/.exec(document.body.className);
    const isDark = jpThemeLight
      ? jpThemeLight === "false"
      : isVsCode
        ? isVsCode[1] === "dark"
        : theme
          ? theme === "dark"
          : system.matches;
    if (isDark !== state.isDark.peek()) state.set("isDark", isDark);
  };
  const observer = new MutationObserver(tell);
  observer.observe(document.body, {
    attributeFilter: ["data-jp-theme-light", "data-theme", "class"],
  });
  system.addEventListener("change", tell);
  tell();
  return () => {
    observer.disconnect();
    system.removeEventListener("change", tell);
  };
}
