"""Whether a page can be read and used in the size and theme in which it stands."""

from playwright.sync_api import Page

# Every visible piece of text, with the contrast to what is painted behind it. A canvas turns any
# notation of a colour into bytes.
CONTRASTS = """() => {
  const context = Object.assign(document.createElement("canvas"), {width: 1, height: 1})
    .getContext("2d", {willReadFrequently: true});
  const bytes = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = bytes(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
    if (element.closest("script, option, .visually-hidden")) continue;
    const [a, b] = [luminance(bytes(getComputedStyle(element).color)), luminance(behind(element))]
      .sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${element.className}: ${node.data.trim()}`);
  }
  return found;
}"""

# WCAG 2.2, 2.5.8: controls that do not stand in a sentence.
SMALL_TARGETS = """() => [...document.querySelectorAll("button, input, select, textarea, .tabs a")]
  .filter((e) => e.type !== "hidden" && e.checkVisibility({visibilityProperty: true}))
  .filter((e) => { const r = e.getBoundingClientRect(); return r.width < 24 || r.height < 24; })
  .filter((e) => !["checkbox", "radio"].includes(e.type))
  // What Enter presses, and nobody sees.
  .filter((e) => !e.closest(".first-button"))
  .map((e) => e.outerHTML.slice(0, 120))"""

# Lines that hold a letter or two each: text in a column that is too narrow for any.
COLUMNS = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const [text, element] = [node.data.trim(), node.parentElement];
    if (text.length < 12 || !element.checkVisibility({visibilityProperty: true})) continue;
    if (element.closest("script, option, textarea, .visually-hidden")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const seen = [...range.getClientRects()].filter((r) => r.width > 1);
    const lines = new Set(seen.map((r) => Math.round(r.top)));
    if (text.length / lines.size < 3) found.push(text.slice(0, 80));
  }
  return found;
}"""

# Words that are broken between two letters, since their column is too narrow. Names and addresses
# may be.
BROKEN = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
    if (element.closest("script, option, textarea, code, pre, svg, .visually-hidden")) continue;
    if (element.closest(".mono, .verbatim")) continue;
    for (const word of node.data.matchAll(/(?<![^\\s])[a-z]{4,14}(?![^\\s])/gi)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = [...range.getClientRects()].filter((r) => r.width > 1);
      if (new Set(lines.map((r) => Math.round(r.top))).size > 1) found.push(word[0]);
    }
  }
  return found;
}"""

# A comma that stands alone: what was put before it ends with a line break.
LOOSE = """() => [...document.querySelectorAll("main :is(p, h1, h2, h3, dt, dd, td, th)")]
  .filter((e) => e.checkVisibility({visibilityProperty: true}))
  .filter((e) => !e.querySelector("p, li, dl, table, code, .mono, .verbatim"))
  .map((e) => e.innerText).filter((text) => / [,;:](?= |$)/.test(text))"""

# Text that nobody can read to its end here, though nothing says that it goes on.
CUT = """() => [...document.querySelectorAll("main :is(p, li, td, th, dt, dd, h1, h2, a, span)")]
  .filter((e) => e.checkVisibility({visibilityProperty: true}))
  .filter((e) => !e.closest(".clamped, .visually-hidden"))
  .filter((e) => getComputedStyle(e).overflowY === "hidden")
  .filter((e) => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.textContent.trim().slice(0, 80))"""

# Names that reach beyond their link or button, over what stands beside it.
SQUEEZED = """() => [...document.querySelectorAll("nav a, .button, .chip")]
  .filter((e) => e.clientWidth && e.checkVisibility({visibilityProperty: true}))
  .filter((e) => getComputedStyle(e).overflowX === "visible" && e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.textContent.trim().slice(0, 80))"""

NAMELESS = """() => [...document.querySelectorAll("a, button, input, select, textarea")]
  .filter((e) => e.type !== "hidden" && e.checkVisibility() && !e.closest(".first-button"))
  .filter((e) => !(e.textContent.trim() || e.labels?.length || e.getAttribute("aria-label")
                   || e.querySelector("[aria-label]")))
  .map((e) => e.outerHTML.slice(0, 120))"""

NOT_ALONE = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  return ids.filter((id, n) => ids.indexOf(id) !== n);
}"""


def complaints(page: Page) -> list[str]:
    found = [
        f"{what}: {one}"
        for what, script in (
            ("contrast", CONTRASTS),
            ("small target", SMALL_TARGETS),
            ("nameless", NAMELESS),
            ("a column of letters", COLUMNS),
            ("a broken word", BROKEN),
            ("a loose comma", LOOSE),
            ("cut off", CUT),
            ("squeezed", SQUEEZED),
            ("the same id twice", NOT_ALONE),
        )
        for one in page.evaluate(script)
    ]
    if (wide := page.evaluate("document.documentElement.scrollWidth - innerWidth")) > 0:
        found.append(f"scrolls sideways by {wide} px")
    if (headings := page.locator("h1").count()) != 1:
        found.append(f"{headings} h1")
    return found
