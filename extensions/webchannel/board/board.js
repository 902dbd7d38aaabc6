// Follows what goes on now. The HTML comes from this site alone and is escaped there.
"use strict";
(() => {
  const live = document.getElementById("live");
  if (!live || !window.EventSource) return;
  const state = document.getElementById("live-state");
  const body = document.getElementById("live-body");
  let source = null;
  const tell = (text) => {
    if (state.textContent !== text) state.textContent = text;
    state.hidden = !text;
  };
  const follow = () => {
    source = new EventSource("/live/board");
    source.addEventListener("open", () => tell(""));
    source.addEventListener("error", () => tell(live.dataset.paused));
    source.addEventListener("board", (e) => {
      const focused = document.activeElement && body.contains(document.activeElement) &&
        document.activeElement.getAttribute("href");
      body.innerHTML = e.data;
      if (focused) {
        for (const a of body.querySelectorAll("a")) {
          if (a.getAttribute("href") === focused) { a.focus({ preventScroll: true }); break; }
        }
      }
    });
  };
  const look = () => {
    if (document.hidden && source) { source.close(); source = null; }
    if (!document.hidden && !source) follow();
  };
  document.addEventListener("visibilitychange", look);
  look();
})();
