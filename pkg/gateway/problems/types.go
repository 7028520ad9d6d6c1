package problems

import (
	"net/http"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Reasons of gateways. Those of schedulers are invocation.RefusalReason.
const (
	BodyNotReadable      = "BodyNotReadable"
	Malformed            = "Malformed"
	NotUTF8              = "NotUTF8"
	CredentialsMissing   = "CredentialsMissing"
	CredentialsInvalid   = "CredentialsInvalid"
	NotAllowed           = "NotAllowed"
	OriginNotAllowed     = "OriginNotAllowed"
	FunctionNotFound     = "FunctionNotFound"
	FunctionDeleted      = "FunctionDeleted"
	UnknownTag           = "UnknownTag"
	UnknownPath          = "UnknownPath"
	HostNotPermitted     = "HostNotPermitted"
	MethodNotAllowed     = "MethodNotAllowed"
	BodyTooSlow          = "BodyTooSlow"
	BodyTooLarge         = "BodyTooLarge"
	NamespaceRate        = "NamespaceRate"
	NamespaceCalls       = "NamespaceCalls"
	NamespaceBodies      = "NamespaceBodies"
	NamespaceShare       = "NamespaceShare"
	FunctionLost         = "FunctionLost"
	InstanceLost         = "InstanceLost"
	BadAnswer            = "BadAnswer"
	RequestCut           = "RequestCut"
	OutcomeUnknown       = "OutcomeUnknown"
	RevisionPending      = "RevisionPending"
	InstanceLeft         = "InstanceLeft"
	Refused              = "Refused"
	CredentialsUnchecked = "CredentialsUnchecked"
	GatewayOverloaded    = "GatewayOverloaded"
	GatewayDraining      = "GatewayDraining"
	NoInstanceInTime     = "NoInstanceInTime"
	TimedOut             = "TimedOut"
	TooDeep              = "TooDeep"
	Unsendable           = "Unsendable"
)

var types = []Type{
	{BodyNotReadable, http.StatusBadRequest, "The request's body could not be read",
		"The body ended before its `Content-Length`, or could not be read.",
		"Fix the client, or the proxy between it and the gateway."},
	{Malformed, http.StatusBadRequest, "The request's method, query or host is malformed",
		"The query or the host contains a byte that a URL must not contain there, such as a space. Or, in HTTP/2, `:authority` and `host` differ, or `:method` is not one word.",
		"Percent-encode the query, send one host, or correct the method."},
	{NotUTF8, http.StatusBadRequest, "The request's address is not UTF-8",
		"The path, the host or the query is not UTF-8.",
		"Percent-encode it as UTF-8."},
	{Unsendable, http.StatusBadRequest, "The function cannot be sent such a call",
		"The function's protocol has no such request: a gRPC call for a function that speaks HTTP/1.1 only, any other call for one that speaks HTTP/2 only, or headers larger than the function takes.",
		"Read `detail`. Let the function speak HTTP/2 without TLS (h2c) for gRPC, and HTTP/1.1 for everything else, or send fewer headers."},
	{CredentialsMissing, http.StatusUnauthorized, "The call needs an API key or a token",
		"The namespace requires an API key or a token, and the call has none. The header `WWW-Authenticate` names the scheme.",
		"Send `Authorization: Bearer` or `Windlass-Key`; `windlass keys create` makes a key. Check that no proxy drops the header."},
	{CredentialsInvalid, http.StatusUnauthorized, "The API key or token is not valid",
		"The key is unknown, revoked or expired; or the token's issuer, audience, time or signature is wrong.",
		"Read `detail`, which names the cause, and see `windlass keys list`. Gateways accept a new key after at most about a minute."},
	{NotAllowed, http.StatusForbidden, "The caller may not call this function",
		"The key or token does not permit this function. The function may or may not exist.",
		"Check what the key permits with `windlass keys list`. For a token, check the issuer's claim and grants in `gateway.auth.issuers`."},
	{OriginNotAllowed, http.StatusForbidden, "This web page or host name may not call functions",
		"In local mode, the call comes from a web page of another origin, or its `Host` is neither `localhost` nor a loopback address.",
		"To allow the page, run `windlass up --allow-origin ORIGIN`."},
	{FunctionNotFound, http.StatusNotFound, "The function does not exist",
		"No function has this name or host, or the function is being deleted, or it was never valid.",
		"Look for the function with `kubectl get functions -A`. Check the path, `/function/NAME.NAMESPACE`, where you can omit only the namespace `default`. Check that the chart value `watchNamespaces` is empty or lists the namespace."},
	{FunctionDeleted, http.StatusNotFound, "The function was deleted while the call waited",
		"The function was deleted while the call waited.",
		"Nothing, or create the function again."},
	{UnknownTag, http.StatusNotFound, "The function has no such tag",
		"The call names a tag, in `Windlass-Tag` or by its host, that the function's `spec.traffic` does not contain. Or the tag and its revision were removed while the call waited.",
		"Correct the header or the host, or add the tag to [`spec.traffic`](revisions.md#parts-of-the-calls)."},
	{UnknownPath, http.StatusNotFound, "There is nothing at this path",
		"The path does not begin with `/function/NAME` or `/function/NAME.NAMESPACE`. Or, on a function's own host, it begins with `/.well-known/windlass/`.",
		"Correct the path. Check that no proxy removes a part of it."},
	{HostNotPermitted, http.StatusNotFound, "The function may not have this host",
		"A function lists the host in `spec.expose.hosts`, but its namespace may not use it.",
		"Grant the host to the namespace in [`tenancy.namespaces`](security.md#hosts-of-their-own), or call the function at its `status.url`."},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "Functions cannot be called with this method",
		"The method is CONNECT or TRACE.",
		"Use another method."},
	{BodyTooSlow, http.StatusRequestTimeout, "The request's body came too slowly",
		"No byte of the body arrived for 10 s, or less than 1 KiB a second arrived, before an instance had the call. Or a body of at most 64 KiB took longer than the call may wait (`calls.queueTimeout`, a minute by default): `detail` says so.",
		"Check the client's network, whether a proxy buffers the body, and `calls.queueTimeout`."},
	{BodyTooLarge, http.StatusRequestEntityTooLarge, "The request's body is too large",
		"The body is larger than the gateway's limit (64 MiB by default), or larger than the 6 MiB that a function with the protocol LambdaRuntime accepts, which its agent refuses.",
		"Raise `gateway.maxBodySize` (in local mode `--max-body-size`), or send a smaller body."},
	{string(invocation.RefusedQueueFull), http.StatusTooManyRequests, "Too many calls of the function are waiting",
		"10,000 calls of the function are already waiting.",
		"Retry after `Retry-After`. Check that instances start. Raise `scaling.maxInstances` or `concurrency`."},
	{string(invocation.RefusedRate), http.StatusTooManyRequests, "The function is over its rate limit",
		"Calls arrive faster than the function's [rate limit](functions.md#limits) allows.",
		"Retry after `Retry-After`, or raise the limit. When another scheduler takes the function over, half of the burst is available at once."},
	{string(invocation.RefusedConcurrency), http.StatusTooManyRequests, "The function is at its limit of concurrent calls",
		"As many calls wait or run as the function's [limit](functions.md#limits) allows.",
		"Retry after `Retry-After`, or raise the limit. Check whether calls take longer than usual."},
	{string(invocation.RefusedWait), http.StatusTooManyRequests, "The call would wait too long",
		"At the mean execution time and the present number of instances, the call would wait longer than it may (`calls.queueTimeout`, a minute by default), and Windlass cannot create more instances.",
		"Raise `scaling.maxInstances` or `concurrency`, or add nodes. `detail` gives the expected wait."},
	{NamespaceRate, http.StatusTooManyRequests, "The namespace is over its rate limit",
		"Calls to the namespace's functions arrive faster than [its `requestsPerSecond`](security.md#how-much-a-namespace-may-use).",
		"Retry after `Retry-After`, or raise the limit. Each gateway enforces an equal part of it."},
	{NamespaceCalls, http.StatusTooManyRequests, "The namespace is at its limit of concurrent calls",
		"As many calls of the namespace wait or run as [its `maxInFlight`](security.md#how-much-a-namespace-may-use) allows.",
		"Retry after `Retry-After`, or raise the limit. Check whether its functions are slow."},
	{NamespaceBodies, http.StatusTooManyRequests, "The namespace is at its limit of memory for bodies",
		"The bodies of its calls, and headers over 4 KiB, use up [its `bodyMemory`](security.md#how-much-a-namespace-may-use).",
		"Retry after `Retry-After`, raise the limit, or send smaller bodies."},
	{NamespaceShare, http.StatusTooManyRequests, "The gateway is nearly full, and the namespace has used its share",
		"The gateway is nearly full, and calls of this namespace take a large part of it.",
		"Add gateways, or raise `gateway.maxInFlight` or `gateway.bodyMemory`. Check whether its functions are slow."},
	{FunctionLost, http.StatusBadGateway, "The function broke off the call",
		"The function crashed, closed the connection, or ran out of memory. Windlass repeats a call of an idempotent function: such a call failed three times, or no instance took it again within `calls.queueTimeout`, a minute by default.",
		"Read the function's log and its Events, and compare its memory with its limit. See also [how soon Windlass notices](functions.md#when-it-ends-in-the-middle-of-a-call)."},
	{InstanceLost, http.StatusBadGateway, "The instance was lost during the call",
		"The instance's node died, its pod was killed, or its connection to the gateway broke. Windlass repeats a call of an idempotent function: such a call lost three instances, or no instance took it again within `calls.queueTimeout`, a minute by default.",
		"Check the nodes and the scheduler's log."},
	{BadAnswer, http.StatusBadGateway, "The function's answer is not valid",
		"The answer was not valid HTTP or had an invalid status, or there was no answer: the Lambda Runtime client asked for the next event without one, or the function speaks HTTP/2 only and closed the connection.",
		"Fix the function."},
	{RequestCut, http.StatusBadGateway, "The request broke off while the function received it",
		"While the gateway streamed the body to an instance, the body stalled, arrived too slowly or became too large. `detail` says which.",
		"Check the client's network, and whether a proxy buffers the body; or send a smaller body."},
	{OutcomeUnknown, http.StatusBadGateway, "The function may have run",
		"A call of an [idempotent](manifest.md) function may have run at an instance that was lost, and could not run again. `detail` says why.",
		"Read `detail`. You can repeat the call, because the function may run twice."},
	{RevisionPending, http.StatusServiceUnavailable, "The function has no revision yet",
		"The function, or the tag that the call names, is so new that the controller has not made its [revision](revisions.md) yet.",
		"Try again. If this persists, check that the controller runs. `kubectl get functions` shows when the function is `Ready`."},
	{string(invocation.RefusedCannotStart), http.StatusServiceUnavailable, "Instances of the function do not start",
		"Instances fail to start. With `problemDetail: All`, `detail` has the reason and the last log lines.",
		"Run `windlass describe`, and look its reason up in [the reasons of a Function](troubleshooting.md#reasons-of-a-function)."},
	{InstanceLeft, http.StatusServiceUnavailable, "The instance left before it ran the call",
		"The instance returned the call without running it, and the gateway had already read more than 96 KiB of the body for it. With less, the call waits for another instance, until 16 have returned it.",
		"Try again. If `detail` speaks of 16 instances, read the function's log: its process ends soon after it is ready."},
	{string(invocation.RefusedNoCapacity), http.StatusServiceUnavailable, "No node has room for an instance",
		"The function has no instance, no node has room for one, and for 5 s no instance on the nodes has become idle, ended or been placed.",
		"Add nodes, or lower the resource requests."},
	{Refused, http.StatusServiceUnavailable, "The call was refused",
		"A scheduler of a newer release refused the call for a reason that this gateway does not know.",
		"Read `detail`. Upgrade the gateways to the schedulers' release."},
	{CredentialsUnchecked, http.StatusServiceUnavailable, "The credentials cannot be checked now",
		"The token names a key that the gateway does not know, and the gateway cannot reach the issuer or has just asked it. Or this release of the gateway does not know the mode that the namespace requires.",
		"Try again. Read the gateway's log, and check that it can reach `jwksURL`. If the log says that the policy is of a later release, upgrade the gateways."},
	{GatewayOverloaded, http.StatusServiceUnavailable, "The gateway is full",
		"The gateway holds as many calls (20,000 by default) or bytes of bodies (512 MiB by default) as it may.",
		"Add gateways, or raise `gateway.maxInFlight` or `gateway.bodyMemory`."},
	{GatewayDraining, http.StatusServiceUnavailable, "The gateway is shutting down",
		"The gateway that received the call is shutting down.",
		"Try again. If this is frequent during upgrades, raise `gateway.drainDelay`."},
	{NoInstanceInTime, http.StatusServiceUnavailable, "No instance took the call in time",
		"No instance took the call within the function's `calls.queueTimeout`, a minute by default. Or an instance had it, and [its node](node-scheduling.md) had no core for it within seven eighths of the function's `timeout`: `detail` says so.",
		"Check whether all instances are busy at `scaling.maxInstances`, whether instances start slowly, whether schedulers run, whether etcd was unreachable when a scheduler died, and whether nodes are busy (`windlass top --nodes`)."},
	{TimedOut, http.StatusGatewayTimeout, "The function did not finish in time",
		"The function did not finish within its `timeout`.",
		"Raise the timeout, or make the function faster."},
	{TooDeep, http.StatusLoopDetected, "Too many functions have called each other in a row",
		"The call is the end of a chain of 16 functions that called each other.",
		"Check that no function calls itself endlessly, directly or through others."},
}
