// Light or dark: as the reader chose, else as the notebook is, else as the system is.

import { effect, signal } from "@preact/signals";
import type { State } from "../state";

export const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const KEY = "irviz-theme";
const YEAR = 365 * 24 * 3600;

/** What was chosen, in any viewer of this browser. */
export const chosenTheme = signal<Theme>(storedTheme());

function storedTheme(): Theme {
  try {
    const cookie = document.cookie.split("; ").find((one) => one.startsWith(`${KEY}=`));
    const kept = cookie?.slice(KEY.length + 1) ?? localStorage.getItem(KEY);
    return THEMES.find((one) => one === kept) ?? "system";
  } catch {
    return "system"; // the browser keeps nothing for this page
  }
}

export function chooseTheme(theme: Theme) {
  chosenTheme.value = theme;
  try {
    localStorage.setItem(KEY, theme); // also in a saved file, which has no cookies
    // each page of `irviz open` has a port, and so a storage, of its own; cookies know no ports
    // biome-ignore lint/suspicious/noDocumentCookie: few browsers have a CookieStore
    document.cookie = `${KEY}=${theme}; max-age=${YEAR}; path=/; SameSite=Strict`;
  } catch {
    // it holds as long as the page
  }
}

/** Whether this page is dark: the same explorer may be shown in others, too. */
export const isDarkPage = signal(false);

/** Follow the theme until the function that is returned is called. */
export function followTheme(state: State): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => {
    const { jpThemeLight, theme } = document.body.dataset; // of JupyterLab, and of marimo
    const isVsCode = /\bvscode-(dark|light)\b/.exec(document.body.className);
    const isDark =
      chosenTheme.value !== "system"
        ? chosenTheme.value === "dark"
        : jpThemeLight
          ? jpThemeLight === "false"
          : isVsCode
            ? isVsCode[1] === "dark"
            : theme
              ? theme === "dark"
              : system.matches;
    isDarkPage.value = isDark;
    if (isDark !== state.isDark.peek()) state.set("isDark", isDark);
  };
  const observer = new MutationObserver(tell);
  observer.observe(document.body, {
    attributeFilter: ["data-jp-theme-light", "data-theme", "class"],
  });
  system.addEventListener("change", tell);
  const stop = effect(tell);
  return () => {
    stop();
    observer.disconnect();
    system.removeEventListener("change", tell);
  };
}
