package scheduler

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

var (
	agentsDecl = Metrics.Gauge(metric.Experimental, "windlass_agents",
		"Agents that are connected to this scheduler, by their release and the protocol in use. Protocol 0 means that scheduler and agent have none in common.",
		"release", "protocol")
	agentsReplacedDecl = Metrics.Counter(metric.Experimental, "windlass_agents_replaced_total",
		"Instances that the scheduler replaced because of their agent's protocol: Outdated ones one at a time, Unsupported ones at once.", "reason")
)

// agentInfo describes the agent at the other end of a stream.
type agentInfo struct {
	release string
	agreed  wire.Agreed
}

// negotiate picks the protocol to use with an agent, and says whether the agent is supported.
func (s *shell) negotiate(h *agentwire.Hello) (agentInfo, core.Agent) {
	agreed, ok := s.protocols.Meet(wire.Heard(h))
	known := agentInfo{release: h.GetRelease(), agreed: agreed}
	switch {
	case !ok:
		return known, core.AgentUnsupported
	case agreed.Protocol < s.oldestKept:
		return known, core.AgentOutdated
	}
	return known, core.AgentCurrent
}

// drainReply asks an agent to leave, with the reason.
func drainReply(e core.Drain) *agentwire.PullReply {
	drain := &agentwire.Drain{Detail: e.Reason}
	if e.Unsupported {
		drain.Reason = agentwire.Drain_REASON_UNSUPPORTED
	}
	return &agentwire.PullReply{Kind: &agentwire.PullReply_Drain{Drain: drain}}
}

// answerHello answers the hello of a client within the control plane. The error is for the
// client.
func (s *shell) answerHello(h *controlwire.Hello) (*controlwire.Welcome, error) {
	ours := wire.ControlProtocols
	agreed, ok := ours.Meet(wire.Heard(h))
	if !ok {
		return nil, status.Errorf(codes.FailedPrecondition, "the client, of release %q, speaks protocols %d to %d, and this scheduler %d to %d",
			h.GetRelease(), h.GetProtocolMin(), h.GetProtocolMax(), ours.Min, ours.Max)
	}
	return &controlwire.Welcome{Protocol: agreed.Protocol, Release: buildinfo.Version, Features: agreed.Features}, nil
}

// Bounds of what agents may say of their release, which becomes a label.
const (
	maxReleases    = 32
	maxReleaseName = 64
	otherRelease   = "other"
)

// releaseName is the release that an agent reports, if it is a valid name.
func releaseName(said string) string {
	if said == "" || len(said) > maxReleaseName {
		return otherRelease
	}
	for _, c := range said {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '+', c == '_', c == '(', c == ')':
		default:
			return otherRelease
		}
	}
	return said
}

// agentVersion groups agents that report the same release and protocol.
type agentVersion struct {
	release  string
	protocol uint32
}

// agents counts the agents that have a stream. Releases beyond a bound count as others.
func (s *streams) agents() map[agentVersion]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, releases := make(map[agentVersion]int), make(map[string]bool)
	for _, p := range s.byKey {
		name := releaseName(p.agent.release)
		if !releases[name] && len(releases) == maxReleases {
			name = otherRelease
		}
		releases[name] = true
		count[agentVersion{name, p.agent.agreed.Protocol}]++
	}
	return count
}

func (c stateCollector) collectAgents(ch chan<- prometheus.Metric) {
	for of, n := range c.s.shell.streams.agents() {
		emit(ch, agentsDecl, float64(n), of.release, strconv.FormatUint(uint64(of.protocol), 10))
	}
}

// agentReplaced counts an instance that is replaced because of its agent.
func (m *metrics) agentReplaced(reason string) {
	if m != nil {
		m.agentsReplaced.WithLabelValues(reason).Inc()
	}
}
