// The board at the quay: shows the next departures and counts down.
const BOARD_ROWS = 6;
const ALMOST_GONE_MINUTES = 5;

function minutesUntil(departure, now) {
  return Math.round((departure.time - now) / 60000);
}

function nextDepartures(departures, now) {
  return departures
    .filter((departure) => departure.time > now && !departure.cancelled)
    .sort((a, b) => a.time - b.time)
    .slice(0, BOARD_ROWS);
}

function drawRow(departure, now) {
  const row = document.createElement("li");
  const minutes = minutesUntil(departure, now);
  row.textContent = `${departure.route} in ${minutes} min`;
  row.dataset.hurry = String(minutes <= ALMOST_GONE_MINUTES);
  return row;
}

export function drawBoard(board, departures, now = new Date()) {
  board.replaceChildren(...nextDepartures(departures, now).map((each) => drawRow(each, now)));
}
