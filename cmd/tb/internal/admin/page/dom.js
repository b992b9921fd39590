// What the other modules build the page with.

const svgNamespace = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(svgNamespace, name), attributes, children);
}

// show sets a text only if it is another, so that screen readers do not repeat it.
export function show(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// number writes a number with at most so many decimals.
export function number(x, decimals = 0) {
  return x.toLocaleString("en", { maximumFractionDigits: decimals });
}

// rate writes tokens a second, or how long one takes.
export function rate(x) {
  return x >= 0.1 ? `${number(x, 1)}/s` : `1 in ${number(1 / x)} s`;
}
