// Keeps "3 min ago" true on a page that stays open, in the words that the server used.
(() => {
  const words = document.body.dataset;
  const UNITS = [[60, words.s, 1], [3600, words.min, 60], [86400, words.h, 3600]];

  function relative(seconds) {
    const length = Math.abs(seconds);
    if (length < 10) return words.now;
    const unit = UNITS.find(([limit]) => length < limit);
    if (!unit) return null;
    const span = unit[1].replace("{n}", Math.floor(length / unit[2]));
    return (seconds > 0 ? words.ago : words.in).replace("{span}", span);
  }

  function left(seconds) {
    return seconds > 0 ? words.in.replace("{span}", words.s.replace("{n}", seconds)) : words.soon;
  }

  setInterval(() => {
    for (const time of document.querySelectorAll("time.countdown")) {
      time.textContent = left(Math.ceil((Date.parse(time.dateTime) - Date.now()) / 1000));
    }
  }, 1000);

  setInterval(() => {
    for (const time of document.querySelectorAll("time.when")) {
      const said = relative((Date.now() - Date.parse(time.dateTime)) / 1000);
      if (said && said !== time.textContent) time.textContent = said;
    }
  }, 5000);
})();
