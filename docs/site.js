// The explorer of the front page is large: it is loaded when the reader comes near it.
const nearby = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) {
        target.src = target.dataset.src;
        nearby.unobserve(target);
      }
    }
  },
  { rootMargin: "200px" },
);
for (const frame of document.querySelectorAll("iframe[data-src]")) {
  nearby.observe(frame);
}
