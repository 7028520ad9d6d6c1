package wire

import "slices"

// The windows of protocols that this release speaks. A protocol gets a new number when
// its predecessor cannot be understood by ignoring what is new, which ought to be
// rare: features say the rest.
//
// An agent lives for as long as its instance. So a number may leave AgentProtocols only
// when KeepAgents was above it for three releases and a year: until then schedulers
// speak with such agents, and replace them one at a time.
var (
	AgentProtocols   = Speech{Min: 1, Max: 1}
	ControlProtocols = Speech{Min: 1, Max: 1}
	// NodeProtocols are those between agents and node agents. Who has none in common does
	// without core tickets, so nothing is replaced for it.
	NodeProtocols = Speech{Min: 1, Max: 1}
)

// KeepAgents is the oldest protocol whose agents are left alone: instances whose agents
// agree on an older one are replaced.
const KeepAgents = 1

// MaxFeatures is how many features are heeded of what the other side names.
const MaxFeatures = 64

// first is the protocol of who does not say what it speaks.
const first = 1

// Speech is what one side of a conversation speaks.
type Speech struct {
	// Min and Max are the oldest and the newest protocol; 0 if that was not said.
	Min, Max uint32
	// Features are what it understands beyond the protocol.
	Features []string
}

// Speaker is a message that says what its sender speaks.
type Speaker interface {
	GetProtocolMin() uint32
	GetProtocolMax() uint32
	GetFeatures() []string
}

// Heard is what the sender of a message speaks.
func Heard(s Speaker) Speech {
	return Speech{Min: s.GetProtocolMin(), Max: s.GetProtocolMax(), Features: s.GetFeatures()}
}

// Agreed is what both sides of a conversation speak.
type Agreed struct {
	Protocol uint32
	// Features are those that both have named.
	Features []string
}

// Has tells whether the other side understands a feature, so that what belongs to it
// may be sent.
func (a Agreed) Has(feature string) bool { return slices.Contains(a.Features, feature) }

// Meet is what a server speaks with a client: the newest protocol that both speak, and
// the features of both. It is false if they have no protocol in common.
func (s Speech) Meet(client Speech) (Agreed, bool) {
	oldest := max(client.Min, first)
	newest := max(client.Max, oldest)
	protocol := min(s.Max, newest)
	if protocol < max(s.Min, oldest) {
		return Agreed{}, false
	}
	return Agreed{Protocol: protocol, Features: s.common(client.Features)}, true
}

// Greeting is a message that says what is spoken from now on.
type Greeting interface {
	GetProtocol() uint32
	GetFeatures() []string
}

// Accept is what a client speaks after a server's greeting. It is false if the client
// does not speak that protocol.
func (s Speech) Accept(g Greeting) (Agreed, bool) {
	protocol := max(g.GetProtocol(), first)
	if protocol < s.Min || protocol > s.Max {
		return Agreed{}, false
	}
	return Agreed{Protocol: protocol, Features: s.common(g.GetFeatures())}, true
}

// common are the features of both; nil if there are none.
func (s Speech) common(theirs []string) []string {
	if len(s.Features) == 0 {
		return nil
	}
	var both []string
	for _, f := range theirs[:min(len(theirs), MaxFeatures)] {
		if slices.Contains(s.Features, f) && !slices.Contains(both, f) {
			both = append(both, f)
		}
	}
	return both
}
