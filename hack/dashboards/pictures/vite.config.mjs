import { defineConfig } from 'vite';

export default defineConfig({
  esbuild: { jsx: 'automatic' },
  // Grafana's packages ask for the environment of a build by Node.js.
  define: { 'process.env': {}, global: 'globalThis' },
  build: { outDir: 'build', target: 'es2022', chunkSizeWarningLimit: 20_000 },
});
