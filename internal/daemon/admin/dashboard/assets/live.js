"use strict";

// Keeps the part of the page with data-live up to date. The server sends it as HTML, in
// which all text is escaped; the page's policy runs no script in it.
(() => {
  const region = document.querySelector("[data-live]");
  const control = document.querySelector("[data-live-control]");
  if (!region || !control || !window.EventSource) return;
  const button = control.querySelector("button");
  const state = control.querySelector("[data-live-state]");
  let source = null;
  let again = 0;

  // A reader is not interrupted: neither a selection nor the focus is taken away.
  const inUse = () =>
    (region.contains(document.activeElement) && document.activeElement !== region) ||
    (!window.getSelection().isCollapsed && region.contains(window.getSelection().anchorNode));

  const show = (text, pressed) => {
    state.textContent = text;
    button.setAttribute("aria-pressed", String(pressed));
    button.textContent = pressed ? "Pause" : "Resume";
  };

  const stop = () => {
    clearTimeout(again);
    if (source) source.close();
    source = null;
  };

  const start = () => {
    stop();
    show("connecting", true);
    source = new EventSource(new URL(region.dataset.live, location.origin)); // without credentials of the page's address
    source.onopen = () => show("live", true);
    source.onmessage = (event) => {
      show("live", true);
      if (inUse()) return;
      const parsed = new DOMParser().parseFromString(event.data, "text/html");
      region.replaceChildren(...parsed.body.childNodes);
    };
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) {
        show("reconnecting", true); // the browser tries again
        return;
      }
      show("not available, next attempt in 30 s", true);
      again = setTimeout(start, 30000);
    };
  };

  control.hidden = false;
  button.addEventListener("click", () => {
    if (source || button.getAttribute("aria-pressed") === "true") {
      stop();
      show("paused", false);
    } else {
      start();
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (button.getAttribute("aria-pressed") !== "true") return;
    if (document.hidden) stop();
    else start();
  });
  start();
})();
