// What `./dev lint` asks of every script of the repository's clients, examples and their tests.
import js from "@eslint/js";

const names = "AbortController AbortSignal CSS CSSStyleSheet Event EventTarget HTMLElement ReadableStream Response TextDecoder TextEncoder URL atob btoa clearTimeout console crypto customElements document fetch indexedDB localStorage navigator setTimeout structuredClone";
const globals = Object.fromEntries(names.split(" ").map((name) => [name, "readonly"]));

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "no-var": "error",
      "prefer-const": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-shadow": ["error", { builtinGlobals: false }],
      "require-await": "error",
      "no-empty": ["error", { allowEmptyCatch: false }],
      "no-console": "error",
    },
  },
  {
    files: ["tests/**"],
    languageOptions: { globals: { process: "readonly", Buffer: "readonly" } },
    rules: { "no-console": "off", "require-await": "off" },
  },
];
