"use strict";
// Puts fragments in place as the server sends them, and says when the connection is lost and back.
(() => {
  const said = document.getElementById("connection");
  const say = (state, words) => { said.dataset.state = state; said.textContent = words; };

  const put = ({ id, html }) => {
    const place = document.getElementById(id);
    if (!place) return;
    const all = (what) => [...place.querySelectorAll(what)];
    const focused = all("a, summary, [tabindex]").indexOf(document.activeElement);
    const open = all("details").map((each) => each.open);
    const scrolled = all(".sheet").map((each) => each.scrollLeft);
    place.innerHTML = html;
    all("details").forEach((each, k) => { each.open = open[k] ?? each.open; });
    all(".sheet").forEach((each, k) => { each.scrollLeft = scrolled[k] ?? 0; });
    if (focused >= 0) all("a, summary, [tabindex]")[focused]?.focus({ preventScroll: true });
  };

  let lost = false;
  const connect = () => {
    const events = new EventSource(document.body.dataset.events);
    events.onopen = () => { say("live", lost ? "Live again." : "Live."); lost = false; };
    events.addEventListener("fragment", (event) => put(JSON.parse(event.data)));
    events.onerror = () => {
      if (!lost) say("lost", `Connection lost at ${new Date().toLocaleTimeString()}. Trying again.`);
      lost = true;
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
    };
  };
  connect();
})();
