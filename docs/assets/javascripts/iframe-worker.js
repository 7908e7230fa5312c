// A page that is opened from disk may not start a Worker, and the search runs in one. There, the
// script of the worker runs in a hidden frame instead, with the few members of Worker that the
// search uses. Served pages keep the browser's own Worker.
(function () {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = null;
      this.waiting = [];
      this.ready = false;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);

      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.receive(data);
      inner.importScripts = (...addresses) => {
        // The search awaits what comes back; scripts of a frame load one after the other.
        return addresses.reduce(
          (before, next) => before.then(() => this.load(String(next))),
          Promise.resolve()
        );
      };
      this.load(String(address)).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.send(data));
      });
    }

    load(address) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = address;
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.appendChild(script);
      });
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      if (this.onmessage) this.onmessage(event);
      this.dispatchEvent(event);
    }

    send(data) {
      const inner = this.frame.contentWindow;
      inner.dispatchEvent(new inner.MessageEvent("message", { data }));
    }

    postMessage(data) {
      if (this.ready) this.send(data);
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
