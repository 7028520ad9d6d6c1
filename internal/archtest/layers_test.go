package archtest

// rows is the map of the code. A package imports only from rows above its own;
// within its row it may import the folder above it and what sideways allows. A
// package that is not listed is a detail of its nearest listed parent, and
// stands where that one stands.
var rows = []struct {
	name     string
	packages []string
}{
	{"words", []string{
		"api/v1alpha1",
		"api/wire",
		"api/wire/agent/v1alpha1",
		"api/wire/control/v1alpha1",
		"internal/backoff",
		"internal/buildinfo",
		"internal/lifecycle",
		"internal/metric",
		"internal/metric/exposition",
		"internal/sameuser",
		"internal/sleep",
		"internal/spelling",
		"internal/webguard",
		"pkg/invoke",
		"pkg/podagent/adapter/lambda/lambdaenv",
		"pkg/podagent/agentenv",
		"pkg/problems",
		"pkg/schedule",
	}},
	{"pure", []string{
		"pkg/admission",
		"pkg/estimate",
		"pkg/fpcs",
		"pkg/fpcs/history",
		"pkg/gateway/address",
		"pkg/gateway/core",
		"pkg/gateway/timeline",
		"pkg/keepalive",
		"pkg/live",
		"pkg/ownership",
		"pkg/ownership/keeping",
		"pkg/podagent/core",
		"pkg/provisioner/nodepick",
		"pkg/provisioner/podspec",
		"pkg/provisioner/share",
		"pkg/provisioner/spare",
		"pkg/queue",
		"pkg/queue/intake",
		"pkg/reconcile",
		"pkg/rollout",
		"pkg/scheduler/alarm",
		"pkg/scheduler/capacity",
		"pkg/scheduler/coldstart",
		"pkg/scheduler/core",
		"pkg/scheduler/upkeep",
		"pkg/workload",
	}},
	{"shells", []string{
		"internal/loadgen",
		"internal/logsink",
		"internal/serve",
		"pkg/callers",
		"pkg/catalog",
		"pkg/catalog/file",
		"pkg/catalog/kube",
		"pkg/live/console",
		"pkg/live/page",
		"pkg/live/scrape",
		"pkg/live/terminal",
		"pkg/ownership/etcd",
		"pkg/peers",
		"pkg/podagent/adapter",
		"pkg/podidentity",
		"pkg/provisioner",
		"pkg/provisioner/kube",
		"pkg/provisioner/process",
		"pkg/runtimes",
		"pkg/tokens",
		"pkg/tracing",
		"pkg/wiretls",
	}},
	{"programs", []string{
		"pkg/control",
		"pkg/controller",
		"pkg/gateway",
		"pkg/kubecontrol",
		"pkg/podagent",
		"pkg/scheduler",
	}},
	{"on top", []string{
		"pkg/bench",
		"pkg/cli",
		"pkg/cluster",
		"pkg/demo",
		"pkg/local",
		"pkg/sim",
		"pkg/sim/cluster",
		"pkg/sim/experiments",
		"pkg/sim/hashsch",
		"pkg/sim/plots",
		"pkg/sim/report",
	}},
	{"mains", []string{
		"cmd/kubectl-windlass",
		"cmd/podagent",
		"cmd/windlass",
		"cmd/windlass-plot",
		"examples/fib",
		"examples/search",
		"internal/apitest",
		"internal/archtest",
		"internal/doccheck",
		"internal/house",
		"internal/lambdaclients",
		"internal/listings",
		"internal/metricsdoc",
		"internal/problemsdoc",
		"internal/publictexts",
		"internal/tracetest",
		"internal/wiretest",
		"test/attacks",
		"test/chart",
		"test/cluster",
		"test/coldstart",
		"test/contract",
		"test/cost",
		"test/dashboards",
		"test/e2e",
		"test/e2e/cluster",
		"test/faults",
		"test/images/functions",
		"test/lab",
		"test/monitoring",
		"test/scale",
		"test/scaleout",
		"test/simulate",
		"test/tenant",
		"test/terminal",
		"test/wire",
	}},
}

// sideways lists the imports within one row that are not of a parent folder.
var sideways = []struct {
	from, to string
	reason   string
}{
	{"api/v1alpha1", "internal/spelling", "a field that is unknown may be one that is misspelt"},
	{"api/v1alpha1", "pkg/invoke", "a Function has a key"},
	{"pkg/problems", "pkg/invoke", "a problem says whether the function ran"},
	{"api/v1alpha1", "pkg/schedule", "a Function has windows, and what cannot be read of them is refused"},
	{"api/wire/control/v1alpha1", "api/wire/agent/v1alpha1", "gateways offer the tickets that agents are handed"},
	{"pkg/callers", "pkg/tokens", "tokens are checked with an issuer's keys"},
	{"pkg/demo", "pkg/bench", "the demo replays a load"},
	{"pkg/demo", "pkg/local", "the demo runs a Windlass of its own"},
	{"pkg/live", "pkg/fpcs/history", "people see what was decided last"},
	{"pkg/podagent/core", "pkg/reconcile", "what an agent believes is compared with what is there"},
	{"pkg/podidentity", "pkg/tokens", "tokens are checked with the cluster's keys"},
	{"pkg/provisioner/podspec", "pkg/provisioner/nodepick", "an agent requests an amount"},
	{"pkg/provisioner/podspec", "pkg/provisioner/spare", "a spare pod is that of a pool"},
	{"pkg/provisioner/process", "pkg/runtimes", "a process needs its language's interpreter and shim"},
	{"pkg/sim/cluster", "pkg/sim/hashsch", "it is what pulling is compared with"},
	{"pkg/sim/experiments", "pkg/sim/cluster", "an experiment is some simulations"},
	{"pkg/sim/experiments", "pkg/sim/report", "an experiment ends with a report"},
	{"pkg/sim/plots", "pkg/sim/report", "what is drawn are a report's charts"},
	{"pkg/scheduler/capacity", "pkg/ownership", "a scheduler is silent once it has missed some beats"},
	{"pkg/scheduler/capacity", "pkg/provisioner/nodepick", "who gets room depends on which nodes have some"},
	{"pkg/scheduler/capacity", "pkg/provisioner/share", "namespaces share what may be created"},
	{"pkg/scheduler/capacity", "pkg/scheduler/alarm", "time alone changes which instances may be evicted"},
	{"pkg/scheduler/core", "pkg/estimate", "a function's core learns how long calls and starts take"},
	{"pkg/scheduler/core", "pkg/fpcs", "a decider is part of a function's core"},
	{"pkg/scheduler/core", "pkg/ownership", "who stands still for long is replaced by a peer meanwhile"},
	{"pkg/scheduler/core", "pkg/queue", "a function's core has a queue"},
	{"pkg/scheduler/core", "pkg/scheduler/upkeep", "the minimum of a function is part of its core"},
	{"pkg/scheduler/upkeep", "pkg/keepalive", "what idle times teach is part of the upkeep"},
	{"pkg/scheduler/upkeep", "pkg/queue", "the upkeep says when an instance may leave its queue"},
	{"test/coldstart", "test/tenant", "it measures functions of its own"},
	{"test/cost", "internal/tracetest", "what is recorded needs somebody who takes it"},
	{"test/dashboards", "test/lab", "pictures are of the lab under load"},
	{"test/dashboards", "test/monitoring", "pictures are of what its Prometheus saw"},
	{"test/faults", "test/lab", "faults are put upon the lab"},
	{"test/lab", "test/cluster", "it runs programs that were built for clusters"},
	{"test/monitoring", "test/lab", "alerts are brought about in the lab"},
	{"test/scaleout", "test/tenant", "it measures functions of its own"},
}

// only lists everything outside the standard library that a package and the
// folders below it may import, except folders with a place of their own.
var only = []allowance{
	{"api/v1alpha1", []string{"go.yaml.in/yaml", "internal/spelling", "k8s.io/api", "k8s.io/apimachinery", "pkg/invoke", "pkg/schedule", "sigs.k8s.io/json", "sigs.k8s.io/yaml"},
		"whoever reads a Function must not link a cluster's client"},
	{"api/wire", nil, "every program links it"},
	{"api/wire/agent/v1alpha1", []string{"google.golang.org/grpc", "google.golang.org/protobuf"}, "it is generated, and every program links it"},
	{"api/wire/control/v1alpha1", []string{"api/wire/agent/v1alpha1", "google.golang.org/grpc", "google.golang.org/protobuf"}, "it is generated"},
	{"pkg/problems", []string{"pkg/invoke"}, "what may go wrong is a list"},
	{"pkg/invoke", nil, "the words that everything shares bring nothing along"},
	{"internal/metric", []string{"github.com/prometheus/client_golang/prometheus"}, "whoever declares a metric needs nothing else"},
	{"internal/metric/exposition", []string{
		"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_model", "github.com/prometheus/common/expfmt",
		"google.golang.org/protobuf", "internal/metric",
	}, "how metrics are written down is no matter of who tells them, or to whom"},
	{"pkg/schedule", []string{"github.com/robfig/cron/v3"}, "what a schedule asks for is a function of the time"},
	{"pkg/admission", []string{"golang.org/x/time/rate"}, "whether there is room is a function of who is here and when"},
	{"pkg/estimate", nil, "it computes with numbers and times"},
	{"pkg/fpcs", []string{"pkg/invoke"}, "a decision is a function of a snapshot"},
	{"pkg/fpcs/history", []string{"pkg/fpcs"}, "what is kept is a function of what was decided"},
	{"pkg/gateway/address", []string{"api/v1alpha1", "pkg/invoke"}, "where a function is called is a function of its name"},
	{"pkg/gateway/core", []string{"pkg/invoke"}, "what may be said of a call is a function of what was done with it"},
	{"pkg/gateway/timeline", nil, "what a call's time was spent on is a function of what happened when"},
	{"pkg/keepalive", nil, "what idle times teach is a function of them"},
	{"pkg/live", []string{"github.com/prometheus/client_model", "pkg/fpcs/history", "pkg/invoke"}, "what is seen is a function of what was told"},
	{"pkg/ownership", nil, "who owns what is a function of what is known"},
	{"pkg/ownership/keeping", []string{"pkg/ownership"}, "what is held and claimed is a function of what was heard"},
	{"pkg/podagent/core", []string{"pkg/invoke", "pkg/reconcile"}, "what an agent does is a function of what happened to it"},
	{"pkg/provisioner/nodepick", nil, "a choice is a function of a list of nodes"},
	{"pkg/provisioner/podspec", []string{
		"api/v1alpha1", "k8s.io/api", "k8s.io/apimachinery", "pkg/invoke",
		"pkg/podagent/adapter/lambda/lambdaenv", "pkg/podagent/agentenv", "pkg/provisioner/nodepick", "pkg/provisioner/spare",
	}, "a pod is a function of its function"},
	{"pkg/provisioner/share", nil, "a share is a function of who wants what"},
	{"pkg/provisioner/spare", []string{"api/v1alpha1", "k8s.io/apimachinery", "pkg/invoke"}, "who fits is a function of a Function and its Runtime"},
	{"pkg/queue", []string{"pkg/invoke"}, "a queue is a value; its user brings the time"},
	{"pkg/queue/intake", []string{"golang.org/x/time", "pkg/invoke"}, "time is an argument of its token bucket, too"},
	{"pkg/reconcile", nil, "what differs is a function of what both sides hold"},
	{"pkg/rollout", []string{"api/v1alpha1", "k8s.io/apimachinery", "pkg/invoke", "pkg/schedule"}, "which revisions there are, and which calls go to them, is a function of what is written and the time"},
	{"pkg/scheduler/alarm", nil, "who is due is a function of the time"},
	{"pkg/scheduler/capacity", []string{
		"golang.org/x/time/rate", "pkg/invoke", "pkg/ownership", "pkg/provisioner/nodepick", "pkg/provisioner/share", "pkg/scheduler/alarm",
	}, "who gets room is a function of the nodes, of who lacks some, and of the time"},
	{"pkg/scheduler/coldstart", nil, "what a start spent its time with is a function of its moments"},
	{"pkg/scheduler/core", []string{
		"pkg/estimate", "pkg/fpcs", "pkg/invoke", "pkg/ownership", "pkg/queue", "pkg/queue/intake", "pkg/schedule",
		"pkg/scheduler/upkeep",
	}, "what a scheduler does about a function is a function of what happened to it"},
	{"pkg/scheduler/upkeep", []string{"pkg/keepalive", "pkg/queue", "pkg/schedule"}, "what is kept is a function of the time and of idle times"},
	{"pkg/sim", []string{
		"api/v1alpha1", "k8s.io/apimachinery", "pkg/fpcs", "pkg/gateway/core", "pkg/invoke", "pkg/ownership",
		"pkg/ownership/keeping", "pkg/podagent/core", "pkg/provisioner/nodepick", "pkg/provisioner/share", "pkg/provisioner/spare",
		"pkg/queue/intake", "pkg/rollout", "pkg/scheduler/capacity", "pkg/scheduler/core",
	}, "what runs in virtual time has no shell"},
	{"pkg/sim/cluster", []string{
		"api/v1alpha1", "github.com/HdrHistogram/hdrhistogram-go", "pkg/estimate", "pkg/fpcs", "pkg/invoke", "pkg/podagent/core",
		"pkg/provisioner/nodepick", "pkg/provisioner/share", "pkg/schedule", "pkg/scheduler/capacity", "pkg/scheduler/core",
		"pkg/sim/hashsch", "pkg/workload",
	}, "what runs in virtual time has no shell"},
	{"pkg/sim/experiments", []string{
		"pkg/fpcs", "pkg/provisioner/nodepick", "pkg/sim/cluster", "pkg/sim/report", "pkg/workload",
	}, "an experiment is a function of its size, a seed and recorded traces"},
	{"pkg/sim/plots", []string{"gonum.org/v1/plot", "pkg/sim/report"}, "a picture is a function of a chart"},
	{"pkg/sim/report", nil, "whoever reads or writes a report needs nothing else"},
	{"pkg/sim/hashsch", nil, "which worker gets a call is a function of what was pushed before"},
	{"pkg/wiretls", []string{"api/wire/agent/v1alpha1", "api/wire/control/v1alpha1", "google.golang.org/grpc"}, "agents link it"},
	{"pkg/workload", nil, "the same seed yields the same load"},
}

// allowance is a row of only.
type allowance struct {
	pkg     string
	imports []string
	reason  string
}

// impure is what of the standard library no package of the pure row may
// import, nor pkg/invoke and pkg/schedule, which would be among them if the
// words did not need them.
var impure = map[string]string{
	"context":     "nothing in it waits or can be cancelled",
	"log":         "a decision says why in its result; the shell logs it",
	"log/slog":    "a decision says why in its result; the shell logs it",
	"math/rand":   "chance comes from a generator that the caller seeds (math/rand/v2)",
	"net":         "it computes, its shell talks",
	"net/http":    "it computes, its shell talks",
	"os":          "it reads only its arguments",
	"os/exec":     "it reads only its arguments",
	"sync":        "its shell holds the lock",
	"sync/atomic": "its shell holds the lock",
}

// hidden is what of an allowed import pure code must not mention, because it
// reads state that is nobody's argument.
var hidden = map[string][]string{
	"time": {"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"},
	"math/rand/v2": {
		"ExpFloat64", "Float32", "Float64", "Int", "Int32", "Int32N", "Int64", "Int64N", "IntN", "N",
		"NormFloat64", "Perm", "Shuffle", "Uint", "Uint32", "Uint32N", "Uint64", "Uint64N", "UintN",
	},
}

// unlinked lists what a package must not even link, by way of others.
var unlinked = []struct {
	pkg    string
	banned []string
	reason string
}{
	{"cmd/podagent",
		[]string{"api/v1alpha1", "github.com/prometheus", "github.com/spf13/cobra", "go.etcd.io", "go.opentelemetry.io", "k8s.io", "sigs.k8s.io"},
		"an agent runs beside every instance: it must stay small, and has no business with the control plane's stores"},
	{"pkg/podagent",
		[]string{"api/v1alpha1", "github.com/prometheus", "go.etcd.io", "go.opentelemetry.io", "k8s.io", "sigs.k8s.io"},
		"cmd/podagent links it"},
	{"cmd/windlass",
		[]string{"gonum.org/v1/plot"},
		"it is in the image of every program of a cluster; what draws has a program of its own"},
	{"pkg/gateway",
		[]string{"pkg/fpcs", "pkg/provisioner", "pkg/queue"},
		"a gateway knows its own calls; queues and instances are the scheduler's"},
	{"pkg/scheduler",
		[]string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
		"a runtime starts instances for it, and not only in clusters"},
}
