// Package admission decides which calls a gateway admits when it cannot admit all.
//
// A Limiter counts each namespace's use of one gateway: calls, and bytes of request bodies. It
// admits a call if that keeps
//
//   - the gateway within its Capacity;
//   - the namespace within its own Limits; the limit on the rate is a token bucket;
//   - the use of the namespace at no more than seven times the free capacity. So a single
//     namespace may use seven eighths of a gateway, several namespaces under overload get equal
//     parts, and a namespace without calls always finds some capacity.
//
// A refused call costs nothing: it takes no token and leaves nothing behind. A Limiter keeps an
// entry only for namespaces that use something or have a rate.
package admission
