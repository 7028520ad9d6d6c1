// Serves the Node.js handler $_HANDLER with the protocol $WINDLASS_PROTOCOL.
//
// Needs Node.js 18 or later and nothing but its built-in modules.
import { load } from './load.mjs';

const protocols = { LambdaRuntime: './lambda.mjs', HTTP: './http.mjs' };
const protocol = process.env.WINDLASS_PROTOCOL || 'LambdaRuntime';
if (!Object.hasOwn(protocols, protocol)) {
  console.error(`windlass: WINDLASS_PROTOCOL is '${protocol}'; it must be LambdaRuntime or HTTP`);
  process.exit(1);
}
if (process.env.WINDLASS_SPARE && protocol !== 'LambdaRuntime') {
  console.error(`windlass: WINDLASS_PROTOCOL is '${protocol}'; a spare instance (WINDLASS_SPARE) must have LambdaRuntime`);
  process.exit(1);
}
const { serve } = await import(protocols[protocol]);
await serve(load);
