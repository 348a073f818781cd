/* A Worker that is a hidden frame, for pages opened from a disk: browsers start no worker there, and the search is one. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      /* postMessage of a worker goes to who made it; importScripts of a frame is a script element. */
      this.frame.srcdoc = `<script>
        window.postMessage = data => parent.postMessage({ worker: true, data }, "*")
        window.importScripts = (...urls) => Promise.all(urls.map(url => new Promise((done, failed) => {
          const script = document.createElement("script")
          Object.assign(script, { src: url, onload: done, onerror: failed })
          document.head.appendChild(script)
        })))
      </script><script src="${url}"></script>`
      this.frame.onload = () => {
        this.loaded = true
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      }
      addEventListener("message", event => {
        if (event.source === this.frame.contentWindow && event.data.worker) {
          const told = new MessageEvent("message", { data: event.data.data })
          this.dispatchEvent(told)
          if (this.onmessage) this.onmessage(told)
        }
      })
      document.head.appendChild(this.frame)
    }
    postMessage(data) {
      if (!this.loaded) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
