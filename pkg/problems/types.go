package problems

import (
	"net/http"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// Reasons that gateways find. Those of schedulers are invoke.RefusalReason.
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
)

var types = []Type{
	{BodyNotReadable, http.StatusBadRequest, "The request's body could not be read",
		"The body ended before its `Content-Length`, or could not be read.",
		"Repair the client or the proxy in front."},
	{Malformed, http.StatusBadRequest, "The request's query or host is malformed",
		"The query or the host has a byte that no URL has there, such as a space; or `:authority` and `host` differ (HTTP/2; in HTTP/1.1 the answer is text).",
		"Percent-encode it, or name one host."},
	{NotUTF8, http.StatusBadRequest, "The request's address is not UTF-8",
		"The path, the host or the query is not UTF-8.",
		"Encode it in percent-encoding."},
	{CredentialsMissing, http.StatusUnauthorized, "The call needs an API key or a token",
		"The namespace requires an API key or a token, and none came. `WWW-Authenticate` says so too.",
		"Send `Authorization: Bearer` or `Windlass-Key`; `windlass keys create` makes a key. Does a proxy in front drop the header?"},
	{CredentialsInvalid, http.StatusUnauthorized, "The API key or token does not count",
		"The key is unknown, revoked or expired; or the token's issuer, audience, time or signature is wrong.",
		"`detail` says which; see `windlass keys list`. A new key counts within about a minute."},
	{NotAllowed, http.StatusForbidden, "The caller may not call this function",
		"The key or token does not permit this function, which may or may not exist.",
		"`windlass keys list`, or the claim and the grants of the issuer in `gateway.auth.issuers`."},
	{OriginNotAllowed, http.StatusForbidden, "This web page or host name may not call functions",
		"In local mode, a web page of another origin called, or the request's `Host` is not `localhost` or a loopback address.",
		"`windlass up --allow-origin ORIGIN`, if the page may."},
	{FunctionNotFound, http.StatusNotFound, "There is no such function",
		"No function has that name or that host, it is being deleted, or it never was valid.",
		"`kubectl get functions -A`. The path is `/function/NAME.NAMESPACE`; only for `default` may the namespace be left out. Is the namespace among the value `watchNamespaces`?"},
	{FunctionDeleted, http.StatusNotFound, "The function was deleted while the call waited",
		"The function was deleted while the call waited.",
		"Nothing, or create it again."},
	{UnknownTag, http.StatusNotFound, "The function has no such tag",
		"The call names in `Windlass-Tag`, or by its host, a tag that `spec.traffic` of the function does not have, or that was taken out while the call waited and its revision removed.",
		"Correct the header or the host, or add the tag to [`spec.traffic`](revisions.md#parts-of-the-calls)."},
	{UnknownPath, http.StatusNotFound, "Nothing is at this path",
		"The path does not begin with `/function/NAME` or `/function/NAME.NAMESPACE`; or, on the host of a function, it begins with `/.well-known/windlass/`.",
		"Correct it. Does a proxy in front cut it off?"},
	{HostNotPermitted, http.StatusNotFound, "The host is not granted to the function that asks for it",
		"The host is one that a function has in `spec.expose.hosts`, and its namespace may not have it.",
		"Grant it in [`tenancy.namespaces`](security.md#hosts-of-their-own); or call the function at its `status.url`."},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "The method is not for functions",
		"The method is CONNECT or TRACE.",
		"Use another."},
	{BodyTooSlow, http.StatusRequestTimeout, "The request's body came too slowly",
		"The body stood still for 10 s, or came at less than 1 KiB a second, before an instance had it.",
		"The client's network; a proxy in front that buffers."},
	{BodyTooLarge, http.StatusRequestEntityTooLarge, "The request's body is too large",
		"The body is over the gateway's limit (64 MiB), or over the 6 MiB of a function of the Lambda Runtime API, and no instance had it.",
		"Raise `gateway.maxBodySize` (locally `--max-body-size`), or send less."},
	{string(invoke.RefusedQueueFull), http.StatusTooManyRequests, "Too many calls of the function wait",
		"10,000 calls of the function wait already.",
		"Heed `Retry-After`. Are instances started? Raise `scaling.maxInstances` or `concurrency`."},
	{string(invoke.RefusedRate), http.StatusTooManyRequests, "The function is called more often than its limit",
		"More calls come in a second than the function's [limits](functions.md#limits) say.",
		"Heed `Retry-After`, or raise the limit. After a take-over by another scheduler, half of the burst is taken at once."},
	{string(invoke.RefusedConcurrency), http.StatusTooManyRequests, "As many calls of the function are under way as its limit",
		"As many calls wait and run as the function's [limits](functions.md#limits) say.",
		"Heed `Retry-After`, or raise the limit. Do calls take longer than usual?"},
	{string(invoke.RefusedWait), http.StatusTooManyRequests, "The call would wait for too long",
		"By the mean execution time and the number of instances, the call would wait for longer than a minute, and there can be no more instances.",
		"Raise `scaling.maxInstances` or `concurrency`, or add nodes; `detail` says how long the wait is."},
	{NamespaceRate, http.StatusTooManyRequests, "The namespace calls more often than its limit",
		"The namespace calls oftener than [its `requestsPerSecond`](security.md#how-much-a-namespace-may-use).",
		"Heed `Retry-After`, or raise the limit. Each gateway has an equal part of it."},
	{NamespaceCalls, http.StatusTooManyRequests, "As many calls of the namespace are under way as its limit",
		"As many calls of the namespace wait or run as [its `maxInFlight`](security.md#how-much-a-namespace-may-use).",
		"Heed `Retry-After`, or raise the limit; or its functions are slow."},
	{NamespaceBodies, http.StatusTooManyRequests, "The bodies of the namespace's calls take all of its memory",
		"The bodies of its calls, and headers over 4 KiB, take [its `bodyMemory`](security.md#how-much-a-namespace-may-use).",
		"Heed `Retry-After`, raise the limit, or send smaller bodies."},
	{NamespaceShare, http.StatusTooManyRequests, "The namespace has its share of a gateway that is nearly full",
		"The gateway is nearly full and the namespace holds much of it.",
		"More gateways, `gateway.maxInFlight`, `gateway.bodyMemory`; or its functions are slow."},
	{FunctionLost, http.StatusBadGateway, "The function broke off the call",
		"It crashed, closed the connection, or was killed for its memory; an idempotent function three times, or it could not run again within a minute.",
		"Its log and the Function's Events; compare its memory with its limit. [How soon that is known](functions.md#when-it-ends-in-the-middle-of-a-call)."},
	{InstanceLost, http.StatusBadGateway, "The instance was lost during the call",
		"Its node died, or its pod was killed; with an idempotent function three times, or it could not run again within a minute.",
		"Nodes, the scheduler's log."},
	{BadAnswer, http.StatusBadGateway, "The function's answer is not valid",
		"The answer was no valid HTTP, had a status that is none, or was missing: the Runtime client asked for the next event without one.",
		"Correct the function."},
	{RequestCut, http.StatusBadGateway, "The request broke off while an instance had it",
		"The body was streamed to an instance and then stood still, came too slowly or became too large; `detail` says which.",
		"The client's network; a proxy in front that buffers; or send less."},
	{OutcomeUnknown, http.StatusBadGateway, "Whether the function ran is not known",
		"The request of an [idempotent](manifest.md) function went out with its ticket, so an instance may have begun with it unseen, and then the call was refused; `detail` says why.",
		"What `detail` says. The function may run twice, so the call may be repeated."},
	{RevisionPending, http.StatusServiceUnavailable, "The function has no revision yet",
		"The function, or the tag that the call names, is so new that no [revision](revisions.md) was made for it yet.",
		"Try again. If it stays so: does the controller run? `kubectl get functions` says when the function is `Ready`."},
	{string(invoke.RefusedCannotStart), http.StatusServiceUnavailable, "Instances of the function do not start",
		"Instances do not start. With `problemDetail: All`, `detail` has the reason and the last log lines.",
		"`windlass describe`, and [the reasons of a Function](troubleshooting.md#reasons-of-a-function)."},
	{InstanceLeft, http.StatusServiceUnavailable, "The instance left before it began",
		"The instance gave the call back unstarted after it was sent over 96 KiB of a body that is streamed; below that the call waits for another.",
		"Try again."},
	{string(invoke.RefusedNoCapacity), http.StatusServiceUnavailable, "No node has room for an instance",
		"No node has room, there is no instance, and for 5 s nothing has moved on the nodes: no instance became idle, ended or was placed.",
		"Add nodes, or lower requests."},
	{Refused, http.StatusServiceUnavailable, "The call was refused",
		"A scheduler of a newer release refused the call for a reason that this gateway does not know.",
		"What `detail` says. Upgrade the gateways too."},
	{CredentialsUnchecked, http.StatusServiceUnavailable, "The credentials cannot be checked now",
		"The token names a key that is not known here, and its issuer cannot be reached or was asked just now; or what the namespace requires is not known to this release of the gateway.",
		"Try again; the gateway's log, and its way to `jwksURL`. Upgrade the gateways, if the log says that the policy is a later release's."},
	{GatewayOverloaded, http.StatusServiceUnavailable, "The gateway is full",
		"This gateway holds 20,000 calls, or 512 MiB of bodies.",
		"More gateways, `gateway.maxInFlight` or `gateway.bodyMemory`."},
	{GatewayDraining, http.StatusServiceUnavailable, "The gateway is shutting down",
		"This gateway is shutting down.",
		"Try again. If it is frequent in upgrades, raise `gateway.drainDelay`."},
	{NoInstanceInTime, http.StatusServiceUnavailable, "No instance took the call in time",
		"No instance took the call within a minute.",
		"All instances busy at `scaling.maxInstances`? Slow starts? No scheduler, or etcd away when one died?"},
	{TimedOut, http.StatusGatewayTimeout, "The function did not finish in time",
		"The function did not finish within its `timeout`.",
		"Raise it, or make it quicker."},
	{TooDeep, http.StatusLoopDetected, "Functions have called each other too often",
		"16 functions called each other in a row.",
		"See that none calls itself without end."},
}
