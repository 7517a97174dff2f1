// Talking to the server: one object, or a stream of objects one per line. No state of its own.

async function ask(path, query, signal) {
  const response = await fetch(`${path}?${new URLSearchParams(query)}`, { signal });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

export async function getJson(path, query = {}, signal = undefined) {
  const response = await ask(path, query, signal);
  return response.status === 204 ? null : response.json();
}

// Calls `each` for every line as it arrives; a refusal is a single line with a `problem`.
export async function getLines(path, query, signal, each) {
  const response = await ask(path, query, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return rest && each(JSON.parse(rest));
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) each(JSON.parse(line));
  }
}

export const aborted = (problem) => problem.name === "AbortError";

// A refusal in one line, with the label of the field that is to blame if the page has one.
export const refusal = (answer, label) => (label && answer.fault ? `${label} ${answer.fault}` : answer.problem);

// The points of an answer about a line: one, several or none.
export const pointsOf = (answer) => answer.points ?? (answer.y === undefined ? [] : [answer]);
