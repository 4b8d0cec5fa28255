// The page on which a file is chosen: one that is dropped anywhere on it is opened, and a chosen one
// needs no second click.

const input = document.querySelector<HTMLInputElement>("#file input");
const said = document.querySelector<HTMLElement>("[role=alert]");
const opening = document.querySelector<HTMLElement>("[role=status]");
const body = document.body;

/** Open a file that the server knows as `what`, or a `name` with its content; say how long it takes. */
async function open(
  key: "what" | "name",
  value: string,
  title: string,
  content?: File,
  missing?: string,
): Promise<void> {
  body.setAttribute("aria-busy", "true");
  if (said) said.hidden = true;
  const began = Date.now();
  const tick = setInterval(() => {
    const seconds = Math.round((Date.now() - began) / 1000);
    if (opening) opening.textContent = `Opening ${title} … ${seconds} s`;
  }, 1000);
  const address = new URL(`open${location.search}`, location.href); // with the token
  address.searchParams.set(key, value);
  if (missing) address.searchParams.set("missing", missing);
  let words = "";
  try {
    const answer = await fetch(address, { method: "POST", body: content ?? null });
    if (answer.ok) {
      location.reload();
      return;
    }
    words = await answer.text();
  } catch {
    // it was too large, or the server has ended
  }
  clearInterval(tick);
  if (opening) opening.textContent = "";
  body.removeAttribute("aria-busy");
  if (!said) return;
  said.textContent = words || "The file could not be sent: at most 1 GB is taken.";
  said.hidden = false;
}

function openFile(file: File | undefined): void {
  if (file) open("name", file.name, file.name, file);
}

input?.addEventListener("change", () => openFile(input.files?.[0]));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  openFile(event.dataTransfer?.files[0]);
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  const chosen = event.submitter;
  if (chosen instanceof HTMLButtonElement && chosen.name)
    open(
      "what",
      chosen.value,
      chosen.querySelector("b")?.textContent ?? "it",
      undefined,
      chosen.dataset.missing,
    );
  else openFile(input?.files?.[0]);
});
