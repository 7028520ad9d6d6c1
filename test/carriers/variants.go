package main

// variant is a way from the client to the function.
type variant struct {
	name string
	// hops is how many proxies there are. Without any it is a gateway and agents, with gateway
	// and agent as the arguments that say which.
	hops           int
	gateway, agent string
	// about says what it is, and lacks what it leaves out that the product's carrier has.
	about, lacks string
}

// Arguments of the roles.
const (
	framesRole         = "frames"
	framesRelayingRole = "frames-relaying"
	httpRole           = "http"
	parsingRole        = "parsing"
	relayingRole       = "relaying"
)

// variants begin with the one to which the others are compared.
var variants = []variant{
	{name: "proxy", hops: 1, about: "one httputil.ReverseProxy: the unit"},
	{name: "two_hops", hops: 2, about: "two of them in a row"},
	{
		name: "frames", gateway: framesRole, agent: framesRole,
		about: "today's frames; the agent calls the function by its own client",
		lacks: "bodies in parts",
	},
	{
		name: "frames_relayed", gateway: framesRole, agent: framesRelayingRole,
		about: "today's frames; the agent writes the request from the frame, and makes a frame of the answer, without a goroutine for the call",
		lacks: "bodies in parts, answers of unknown length; several calls at a time; the checks of the agent's client",
	},
	{
		name: "http_parsed", gateway: httpRole, agent: parsingRole,
		about: "HTTP/1.1 backwards; the agent parses requests and calls the function by its own client",
		lacks: "bodies in parts; several calls on one connection; cancelling without closing; a gateway that hears of the end of an idle connection; trailers, upgrades, interim answers",
	},
	{
		name: "http_relayed", gateway: httpRole, agent: relayingRole,
		about: "HTTP/1.1 backwards; the agent reads where messages end, and copies them",
		lacks: "several calls on one connection; cancelling without closing; a gateway that hears of the end of an idle connection; trailers, upgrades, 100 Continue; the time of a call whose answer is long",
	},
}

// carriers are the variants with a gateway and agents.
func carriers() []variant {
	var with []variant
	for _, v := range variants {
		if v.hops == 0 {
			with = append(with, v)
		}
	}
	return with
}
