import tseslint from "typescript-eslint";

export default tseslint.config(...tseslint.configs.strict, {
  files: ["src/**/*.ts", "tests/**/*.ts"],
  rules: { "no-restricted-properties": ["error", { property: "innerHTML", message: "Text becomes text: use h()." }] },
});
