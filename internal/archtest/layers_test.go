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
		"pkg/invocation",
		"pkg/podagent/adapter/lambda/lambdaenv",
		"pkg/podagent/agentenv",
		"pkg/gateway/problems",
		"internal/schedule",
	}},
	{"pure", []string{
		"pkg/gateway/admission",
		"pkg/autoscaler/estimate",
		"pkg/autoscaler",
		"pkg/autoscaler/decisionlog",
		"pkg/gateway/address",
		"pkg/gateway/core",
		"pkg/gateway/timeline",
		"internal/monitor",
		"pkg/ownership",
		"pkg/ownership/coordinator",
		"pkg/podagent/core",
		"pkg/provisioner/placement",
		"pkg/provisioner/podspec",
		"pkg/provisioner/fairshare",
		"pkg/provisioner/warmpool",
		"pkg/queue",
		"pkg/queue/admission",
		"internal/reconcile",
		"pkg/rollout",
		"pkg/scheduler/timerqueue",
		"pkg/scheduler/capacity",
		"pkg/scheduler/coldstart",
		"pkg/scheduler/core",
		"pkg/autoscaler/floor",
		"internal/workload",
	}},
	{"shells", []string{
		"internal/loadgen",
		"internal/serve",
		"pkg/gateway/auth",
		"pkg/catalog",
		"pkg/catalog/file",
		"pkg/catalog/kube",
		"internal/monitor/console",
		"internal/monitor/page",
		"internal/monitor/scrape",
		"internal/monitor/terminal",
		"pkg/ownership/etcd",
		"pkg/ownership/health",
		"pkg/podagent/adapter",
		"internal/podtoken",
		"pkg/provisioner",
		"pkg/provisioner/kube",
		"pkg/provisioner/process",
		"internal/runtimes",
		"internal/jwks",
		"internal/tracing",
		"internal/mtls",
	}},
	{"programs", []string{
		"internal/localapi",
		"pkg/controller",
		"pkg/gateway",
		"internal/kubeclient",
		"pkg/podagent",
		"pkg/scheduler",
	}},
	{"on top", []string{
		"internal/bench",
		"internal/bench/measure",
		"internal/bench/peers",
		"internal/bench/workers",
		"internal/cli",
		"internal/cluster",
		"internal/demo",
		"internal/local",
		"internal/replay",
		"test/simulate/sim",
		"internal/sim/cluster",
		"internal/sim/experiments",
		"internal/sim/hashsch",
		"internal/sim/plots",
		"internal/sim/report",
	}},
	{"mains", []string{
		"cmd/benchpeer",
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
		"internal/testreport",
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
	{"api/v1alpha1", "pkg/invocation", "a Function has a key"},
	{"pkg/gateway/problems", "pkg/invocation", "a problem says whether the function ran"},
	{"api/v1alpha1", "internal/schedule", "a Function has windows, and what cannot be read of them is refused"},
	{"api/wire/control/v1alpha1", "api/wire/agent/v1alpha1", "gateways offer the tickets that agents are handed"},
	{"pkg/gateway/auth", "internal/jwks", "tokens are checked with an issuer's keys"},
	{"internal/bench", "internal/sim/report", "what is drawn are charts as those of experiments"},
	{"internal/bench/measure", "internal/bench/peers", "it starts them, and knows their arguments and lines"},
	{"internal/bench/measure", "internal/bench/workers", "it starts them, and knows their flags"},
	{"internal/bench/workers", "internal/bench/peers", "all that the bench starts prints the same line"},
	{"internal/demo", "internal/replay", "the demo replays a load"},
	{"internal/demo", "internal/local", "the demo runs a Windlass of its own"},
	{"internal/monitor", "pkg/autoscaler/decisionlog", "people see what was decided last"},
	{"pkg/podagent/core", "internal/reconcile", "what an agent believes is compared with what is there"},
	{"internal/podtoken", "internal/jwks", "tokens are checked with the cluster's keys"},
	{"pkg/provisioner/podspec", "pkg/provisioner/placement", "an agent requests an amount"},
	{"pkg/provisioner/podspec", "pkg/provisioner/warmpool", "a spare pod is that of a pool"},
	{"pkg/provisioner/process", "internal/runtimes", "a process needs its language's interpreter and shim"},
	{"internal/sim/cluster", "internal/sim/hashsch", "it is what pulling is compared with"},
	{"internal/sim/experiments", "internal/sim/cluster", "an experiment is some simulations"},
	{"internal/sim/experiments", "internal/sim/report", "an experiment ends with a report"},
	{"internal/sim/plots", "internal/sim/report", "what is drawn are a report's charts"},
	{"pkg/scheduler/capacity", "pkg/ownership", "a scheduler is silent once it has missed some beats"},
	{"pkg/scheduler/capacity", "pkg/provisioner/placement", "who gets room depends on which nodes have some"},
	{"pkg/scheduler/capacity", "pkg/provisioner/fairshare", "namespaces share what may be created"},
	{"pkg/scheduler/capacity", "pkg/scheduler/timerqueue", "time alone changes which instances may be evicted"},
	{"pkg/scheduler/core", "pkg/autoscaler/estimate", "a function's core learns how long calls and starts take"},
	{"pkg/scheduler/core", "pkg/autoscaler", "a decider is part of a function's core"},
	{"pkg/scheduler/core", "pkg/ownership", "who stands still for long is replaced by a peer meanwhile"},
	{"pkg/scheduler/core", "pkg/queue", "a function's core has a queue"},
	{"pkg/autoscaler/floor", "pkg/queue", "the floor says when an instance may leave its queue"},
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
	{"api/v1alpha1", []string{"go.yaml.in/yaml", "internal/spelling", "k8s.io/api", "k8s.io/apimachinery", "pkg/invocation", "internal/schedule", "sigs.k8s.io/json", "sigs.k8s.io/yaml"},
		"whoever reads a Function must not link a cluster's client"},
	{"api/wire", nil, "every program links it"},
	{"api/wire/agent/v1alpha1", []string{"google.golang.org/grpc", "google.golang.org/protobuf"}, "it is generated, and every program links it"},
	{"api/wire/control/v1alpha1", []string{"api/wire/agent/v1alpha1", "google.golang.org/grpc", "google.golang.org/protobuf"}, "it is generated"},
	{"pkg/gateway/problems", []string{"pkg/invocation"}, "what may go wrong is a list"},
	{"pkg/invocation", nil, "the words that everything shares bring nothing along"},
	{"internal/metric", []string{"github.com/prometheus/client_golang/prometheus"}, "whoever declares a metric needs nothing else"},
	{"internal/metric/exposition", []string{
		"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_model", "github.com/prometheus/common/expfmt",
		"google.golang.org/protobuf", "internal/metric",
	}, "how metrics are written down is no matter of who tells them, or to whom"},
	{"internal/schedule", []string{"github.com/robfig/cron/v3"}, "what a schedule asks for is a function of the time"},
	{"pkg/gateway/admission", []string{"golang.org/x/time/rate"}, "whether there is room is a function of who is here and when"},
	{"pkg/autoscaler/estimate", nil, "it computes with numbers and times"},
	{"pkg/autoscaler", []string{"pkg/invocation"}, "a decision is a function of a snapshot"},
	{"pkg/autoscaler/decisionlog", []string{"pkg/autoscaler"}, "what is kept is a function of what was decided"},
	{"pkg/gateway/address", []string{"api/v1alpha1", "pkg/invocation"}, "where a function is called is a function of its name"},
	{"pkg/gateway/core", []string{"pkg/invocation"}, "what may be said of a call is a function of what was done with it"},
	{"pkg/gateway/timeline", nil, "what a call's time was spent on is a function of what happened when"},
	{"internal/monitor", []string{"github.com/prometheus/client_model", "pkg/autoscaler/decisionlog", "pkg/invocation"}, "what is seen is a function of what was told"},
	{"pkg/ownership", nil, "who owns what is a function of what is known"},
	{"pkg/ownership/coordinator", []string{"pkg/ownership"}, "what is held and claimed is a function of what was heard"},
	{"pkg/podagent/core", []string{"pkg/invocation", "internal/reconcile"}, "what an agent does is a function of what happened to it"},
	{"pkg/provisioner/placement", nil, "a choice is a function of a list of nodes"},
	{"pkg/provisioner/podspec", []string{
		"api/v1alpha1", "k8s.io/api", "k8s.io/apimachinery", "pkg/invocation",
		"pkg/podagent/adapter/lambda/lambdaenv", "pkg/podagent/agentenv", "pkg/provisioner/placement", "pkg/provisioner/warmpool",
	}, "a pod is a function of its function"},
	{"pkg/provisioner/fairshare", nil, "a share is a function of who wants what"},
	{"pkg/provisioner/warmpool", []string{"api/v1alpha1", "k8s.io/apimachinery", "pkg/invocation"}, "who fits is a function of a Function and its Runtime"},
	{"pkg/queue", []string{"pkg/invocation"}, "a queue is a value; its user brings the time"},
	{"pkg/queue/admission", []string{"golang.org/x/time", "pkg/invocation"}, "time is an argument of its token bucket, too"},
	{"internal/reconcile", nil, "what differs is a function of what both sides hold"},
	{"pkg/rollout", []string{"api/v1alpha1", "k8s.io/apimachinery", "pkg/invocation", "internal/schedule"}, "which revisions there are, and which calls go to them, is a function of what is written and the time"},
	{"pkg/scheduler/timerqueue", nil, "who is due is a function of the time"},
	{"pkg/scheduler/capacity", []string{
		"golang.org/x/time/rate", "pkg/invocation", "pkg/ownership", "pkg/provisioner/placement", "pkg/provisioner/fairshare", "pkg/scheduler/timerqueue",
	}, "who gets room is a function of the nodes, of who lacks some, and of the time"},
	{"pkg/scheduler/coldstart", nil, "what a start spent its time with is a function of its moments"},
	{"pkg/scheduler/core", []string{
		"pkg/autoscaler/estimate", "pkg/autoscaler", "pkg/invocation", "pkg/ownership", "pkg/queue", "pkg/queue/admission", "internal/schedule",
		"pkg/autoscaler/floor",
	}, "what a scheduler does about a function is a function of what happened to it"},
	{"pkg/autoscaler/floor", []string{"pkg/queue", "internal/schedule"}, "what is kept is a function of the time and of idle times"},
	{"test/simulate/sim", []string{
		"api/v1alpha1", "k8s.io/apimachinery", "pkg/autoscaler", "pkg/gateway/core", "pkg/invocation", "pkg/ownership",
		"pkg/ownership/coordinator", "pkg/podagent/core", "pkg/provisioner/placement", "pkg/provisioner/fairshare", "pkg/provisioner/warmpool",
		"pkg/queue/admission", "pkg/rollout", "pkg/scheduler/capacity", "pkg/scheduler/core",
	}, "what runs in virtual time has no shell"},
	{"internal/bench/peers", []string{"internal/loadgen"}, "the unit of all ratios is a small program"},
	{"internal/bench", []string{"internal/sim/report"}, "a plan is a function of arguments, and a report one of measurements"},
	{"internal/sim/cluster", []string{
		"api/v1alpha1", "github.com/HdrHistogram/hdrhistogram-go", "pkg/autoscaler/estimate", "pkg/autoscaler", "pkg/invocation", "pkg/podagent/core",
		"pkg/provisioner/placement", "pkg/provisioner/fairshare", "internal/schedule", "pkg/scheduler/capacity", "pkg/scheduler/core",
		"internal/sim/hashsch", "internal/workload",
	}, "what runs in virtual time has no shell"},
	{"internal/sim/experiments", []string{
		"pkg/autoscaler", "pkg/provisioner/placement", "internal/sim/cluster", "internal/sim/report", "internal/workload",
	}, "an experiment is a function of its size, a seed and recorded traces"},
	{"internal/sim/plots", []string{"gonum.org/v1/plot", "internal/sim/report"}, "a picture is a function of a chart"},
	{"internal/sim/report", nil, "programs that read or write a report need nothing else"},
	{"internal/sim/hashsch", nil, "which worker gets a call is a function of what was pushed before"},
	{"internal/mtls", []string{"api/wire/agent/v1alpha1", "api/wire/control/v1alpha1", "google.golang.org/grpc"}, "agents link it"},
	{"internal/workload", nil, "the same seed yields the same load"},
}

// allowance is a row of only.
type allowance struct {
	pkg     string
	imports []string
	reason  string
}

// impure is what of the standard library no package of the pure row may
// import, nor pkg/invocation and internal/schedule, which would be among them if the
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
		[]string{"api/v1alpha1", "github.com/HdrHistogram", "github.com/prometheus", "github.com/spf13/cobra", "go.etcd.io", "go.opentelemetry.io", "k8s.io", "sigs.k8s.io"},
		"an agent runs beside every instance: it must stay small, and has no business with the control plane's stores"},
	{"pkg/podagent",
		[]string{"api/v1alpha1", "github.com/prometheus", "go.etcd.io", "go.opentelemetry.io", "k8s.io", "sigs.k8s.io"},
		"cmd/podagent links it"},
	{"cmd/benchpeer",
		[]string{
			"api/v1alpha1", "github.com/prometheus", "github.com/spf13/cobra", "go.etcd.io", "go.opentelemetry.io", "google.golang.org/grpc", "k8s.io",
			"sigs.k8s.io",
		},
		"the garbage collector looks through all that is linked, and a dear proxy would flatter Windlass"},
	{"cmd/windlass",
		[]string{"gonum.org/v1/plot"},
		"it is in the image of every program of a cluster; what draws has a program of its own"},
	{"pkg/gateway",
		[]string{"pkg/autoscaler", "pkg/provisioner", "pkg/queue"},
		"a gateway knows its own calls; queues and instances are the scheduler's"},
	{"pkg/scheduler",
		[]string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
		"a runtime starts instances for it, and not only in clusters"},
}
