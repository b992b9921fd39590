// Functions with which the other modules build the page.

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

// show sets a text only if it differs, so that screen readers do not repeat it.
export function show(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// number formats x with at most the given decimals.
export function number(x, decimals = 0) {
  return x.toLocaleString("en", { maximumFractionDigits: decimals });
}

// rate formats a rate as tokens a second, or as one token in some seconds.
export function rate(x) {
  return x >= 0.1 ? `${number(x, 1)}/s` : `1 in ${number(1 / x)} s`;
}
