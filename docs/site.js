// The explorer of the front page is large: it is loaded when the page has been shown.
addEventListener("load", () => {
  for (const frame of document.querySelectorAll("iframe[data-src]")) {
    frame.src = frame.dataset.src;
  }
});
