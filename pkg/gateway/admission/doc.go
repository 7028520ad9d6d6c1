// Package admission decides which calls a gateway takes when it cannot take all.
//
// A Limiter counts what each namespace uses of one gateway: calls, and bytes of
// request bodies. It admits a call if that keeps
//
//   - the gateway within its Capacity;
//   - the namespace within its own Limits, of which the rate is a token bucket;
//   - the namespace at no more than seven times of what is free. So one namespace
//     alone may use seven eighths of a gateway, and several that want more than
//     there is end up with equal parts of it, while something is always left for
//     one that has nothing yet.
//
// A refused call costs nothing: it takes no token of a rate, and leaves nothing
// behind. A Limiter keeps an entry only for namespaces that use something or have a rate.
package admission
