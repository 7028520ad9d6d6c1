// Package serve serves what Windlass's programs have in common: HTTP and gRPC with
// the limits that fit them, health checks and metrics. What it serves ends with
// its context, and in order.
package serve
