package localapi

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// NodeName is the node that local mode runs all instances on.
const NodeName = "local"

// Where local mode listens unless something else is said: its gateway, and health checks and metrics.
const (
	DefaultListen    = "127.0.0.1:8080"
	DefaultOpsListen = "127.0.0.1:8081"
)

const (
	apiPrefix   = "/apis/" + v1alpha1.APIVersion
	invocations = apiPrefix + "/invocations"
	// latestPath has the last decisions on all functions.
	latestPath = apiPrefix + "/decisions"
	// maxManifest is the largest Function in bytes: source code can be inline.
	maxManifest = 16 << 20
	// dryRun is the parameter of a PUT that changes nothing.
	dryRun = "dryRun"
	// basedOn is the parameter of a PUT that names the version which it replaces.
	basedOn = "basedOn"
	// labelSelector is the parameter that chooses revisions.
	labelSelector = "labelSelector"
	// allLines as a tail means that no line is left out.
	allLines = -1
)

// LogOptions select the lines of a log.
type LogOptions struct {
	// Follow goes on with new lines until the function is deleted.
	Follow bool
	// Tail is how many of the last lines are copied, of all instances together; a
	// negative one means all.
	Tail int
	// Since leaves out earlier lines, unless it is zero.
	Since time.Time
	// Timestamps puts its time before each line.
	Timestamps bool
}

func (o LogOptions) query() url.Values {
	query := url.Values{"follow": {strconv.FormatBool(o.Follow)}, "tail": {strconv.Itoa(o.Tail)}, "timestamps": {strconv.FormatBool(o.Timestamps)}}
	if !o.Since.IsZero() {
		query.Set("since", o.Since.Format(time.RFC3339Nano))
	}
	return query
}

// logOptions reads what query writes; what is left out is as if it were not asked for.
func logOptions(query url.Values) (o LogOptions, err error) {
	o.Tail = allLines
	for name, into := range map[string]*bool{"follow": &o.Follow, "timestamps": &o.Timestamps} {
		if v := query.Get(name); v != "" {
			if *into, err = strconv.ParseBool(v); err != nil {
				return o, fmt.Errorf("%s=%s: write true or false", name, v)
			}
		}
	}
	if v := query.Get("tail"); v != "" {
		if o.Tail, err = strconv.Atoi(v); err != nil {
			return o, fmt.Errorf("tail=%s: write a number of lines, or -1 for all", v)
		}
	}
	if v := query.Get("since"); v != "" {
		if o.Since, err = time.Parse(time.RFC3339Nano, v); err != nil {
			return o, fmt.Errorf("since=%s: write a time such as 2026-03-01T12:00:00Z", v)
		}
	}
	return o, nil
}

// Info describes a running Windlass.
type Info struct {
	Version string `json:"version"`
	// GatewayURL is where functions are called.
	GatewayURL string `json:"gatewayURL"`
	// OpsURL is where health and metrics are.
	OpsURL  string `json:"opsURL"`
	DataDir string `json:"dataDir"`
	PID     int    `json:"pid"`
	// Key is an API key for GatewayURL, if that requires one. A client of the control socket
	// may call every function.
	Key string `json:"key,omitempty"`
}

// Applied is the result of applying a Function.
type Applied struct {
	Result   file.Result        `json:"result"`
	Function *v1alpha1.Function `json:"function"`
	// Before is the function as it was, without its status; nil if it is new.
	Before *v1alpha1.Function `json:"before,omitempty"`
}

// Reason names the kind of an error.
type Reason string

// Reasons of an Error.
const (
	// ReasonNotFound says that no function has that name, or that the invocation is not
	// remembered.
	ReasonNotFound Reason = "NotFound"
	// ReasonInvalid says that the Function is not valid; Details say where.
	ReasonInvalid Reason = "Invalid"
	// ReasonBadRequest says that the request makes no sense.
	ReasonBadRequest Reason = "BadRequest"
	// ReasonTooLarge says that the Function is larger than 16 MiB.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonConflict says that the function is not any more what the change goes by.
	ReasonConflict Reason = "Conflict"
	// ReasonNoLog says that nothing was logged yet.
	ReasonNoLog Reason = "NoLog"
	// ReasonInternal says that Windlass itself failed.
	ReasonInternal Reason = "Internal"
)

// Error is the body of every answer that is an error.
type Error struct {
	Reason Reason `json:"reason"`
	// Message explains to people what is wrong and what to do about it.
	Message string `json:"message"`
	// Details are the invalid fields, for an invalid Function.
	Details []FieldProblem `json:"details,omitempty"`
}

// FieldProblem is one thing that is wrong with a Function.
type FieldProblem struct {
	// Field is a path such as spec.template.timeout.
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

func listPath(namespace string) string {
	if namespace == "" {
		return apiPrefix + "/functions"
	}
	return apiPrefix + "/namespaces/" + url.PathEscape(namespace) + "/functions"
}

// revisionsPath lists the revisions of a function.
func revisionsPath(fn *v1alpha1.Function) string {
	query := url.Values{labelSelector: {wellknown.LabelFunctionUID + "=" + string(fn.UID)}}
	return apiPrefix + "/namespaces/" + url.PathEscape(fn.Namespace) + "/functionrevisions?" + query.Encode()
}

func functionPath(key invocation.FunctionKey) string {
	return listPath(key.Namespace) + "/" + url.PathEscape(key.Name)
}
