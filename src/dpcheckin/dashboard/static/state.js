// What has been chosen, kept in the address: the link to this page is the whole state.
// Values stay as they were typed, so that 1/30 is not turned into something longer.

const EXTRA = { view: "planner", over: "", hide: "", target: "", run: "", find: "", sort: "", with: "", beside: "", parts: "" };

export class State {
  constructor(defaults) {
    this.defaults = { ...EXTRA, ...defaults };
    this.listeners = [];
    this.read();
    addEventListener("popstate", () => {
      this.read();
      this.tell(null);
    });
  }

  read() {
    this.values = { ...this.defaults };
    for (const [name, value] of new URLSearchParams(location.search))
      if (name in this.defaults) this.values[name] = value;
  }

  get(name) {
    return this.values[name];
  }

  set(changes) {
    const changed = Object.keys(changes).filter((name) => this.values[name] !== changes[name]);
    if (!changed.length) return;
    Object.assign(this.values, changes);
    history.replaceState(null, "", this.link());
    this.tell(changed);
  }

  // `changed` lists names; null means that anything may have changed.
  tell(changed) {
    for (const listener of this.listeners) listener(changed);
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  link() {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(this.values))
      if (value !== this.defaults[name]) query.set(name, value);
    const text = query.toString();
    return `${location.pathname}${text ? `?${text}` : ""}`;
  }
}
