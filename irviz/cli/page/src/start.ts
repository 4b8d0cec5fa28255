// The page on which a file is chosen: one that is dropped anywhere on it is opened, and a chosen one
// needs no second click.

const form = document.getElementById("file");
const input = form?.querySelector("input");

if (form instanceof HTMLFormElement && input) {
  input.addEventListener("change", () => form.requestSubmit());
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const files = event.dataTransfer?.files;
    if (!files?.length) return;
    input.files = files;
    form.requestSubmit();
  });
}

document.addEventListener("submit", () => {
  document.body.setAttribute("aria-busy", "true");
});
