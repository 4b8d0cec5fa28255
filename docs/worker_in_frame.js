// A page that is opened from disk may not start a worker, in which the search runs: it runs in a
// frame instead. The build puts this in the place of a script that the theme takes from the web.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #loaded;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      this.#frame.contentWindow.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      const inside = this.#frame.contentDocument;
      const script = inside.createElement("script");
      this.#loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      script.src = url;
      inside.body.append(script);
    }

    async postMessage(data) {
      await this.#loaded;
      this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
