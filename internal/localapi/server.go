package localapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Store applies and deletes functions. Its errors are those of file.Store.
type Store interface {
	Replace(base file.Version, fn *v1alpha1.Function) (file.Result, error)
	// Preview is what Replace would do now, and what would come of it.
	Preview(fn *v1alpha1.Function) (file.Result, *v1alpha1.Function, error)
	Delete(key invocation.FunctionKey) error
}

// Reader lists functions. They are shared; callers must not change them.
type Reader interface {
	Get(key invocation.FunctionKey) (*v1alpha1.Function, bool)
	// List returns them in the order of their keys.
	List() []*v1alpha1.Function
}

// StatusReader observes functions.
type StatusReader interface {
	Status(fn *v1alpha1.Function) v1alpha1.FunctionStatus
}

// Archive lists the revisions of functions.
type Archive interface {
	// Revisions returns the revisions of a function, oldest first; none if the function does
	// not exist.
	Revisions(key invocation.FunctionKey) []*v1alpha1.FunctionRevision
}

// Logs prints what a function's instances have written.
type Logs interface {
	// Follow prints the lines of all instances in the order of their times. If options ask for
	// it, it follows them until ctx ends; before it waits for new ones it writes to w, even if it
	// has no bytes, because a client gives up an answer that does not begin. If there is nothing to
	// print, it returns an error before it writes.
	Follow(ctx context.Context, w io.Writer, key invocation.FunctionKey, options LogOptions) error
}

// DecisionReader has the last decisions on functions.
type DecisionReader interface {
	// Report returns the last decisions on a function; false if it does not exist.
	Report(key invocation.FunctionKey) (decisionlog.Report, bool)
	// Latest returns the last decision on each function that had one recently.
	Latest() decisionlog.LatestReport
}

// CallLookup has the logs of the last calls. It is false for a call that it does not have.
type CallLookup interface {
	LookUp(id invocation.ID) (invocation.Findings, bool)
}

// Deps are what the API is made of.
type Deps struct {
	Info         Info
	Store        Store
	Reader       Reader
	StatusReader StatusReader
	Archive      Archive
	Logs         Logs
	Decisions    DecisionReader
	CallLookup   CallLookup
}

// New makes the handler of the API.
func New(deps Deps) http.Handler {
	s := &server{deps}
	mux := http.NewServeMux()
	const all, inNamespace = apiPrefix + "/functions", apiPrefix + "/namespaces/{ns}/functions"
	const one = inNamespace + "/{name}"
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, deps.Info) })
	mux.HandleFunc("GET "+all, s.list)
	mux.HandleFunc("GET "+inNamespace, s.list)
	mux.HandleFunc("GET "+one, s.get)
	mux.HandleFunc("GET "+apiPrefix+"/namespaces/{ns}/functionrevisions", s.revisions)
	mux.HandleFunc("PUT "+one, s.apply)
	mux.HandleFunc("DELETE "+one, s.delete)
	mux.HandleFunc("GET "+one+"/log", s.log)
	mux.HandleFunc("GET "+invocations+"/{id}", s.lookUpCall)
	mux.HandleFunc("GET "+one+"/decisions", s.decisions)
	mux.HandleFunc("GET "+latestPath, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, deps.Decisions.Latest()) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, &Error{Reason: ReasonBadRequest,
			Message: fmt.Sprintf("%s %s is not known here; the windlass command may be of another version than the Windlass that runs: restart it with windlass up", r.Method, r.URL.Path)})
	})
	return mux
}

type server struct{ Deps }

func keyOf(r *http.Request) invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: r.PathValue("ns"), Name: r.PathValue("name")}
}

// observed is a copy of fn with its status.
func (s *server) observed(fn *v1alpha1.Function) *v1alpha1.Function {
	with := *fn
	with.APIVersion, with.Kind = v1alpha1.APIVersion, v1alpha1.KindFunction
	with.Status = s.StatusReader.Status(fn)
	return &with
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	namespace := r.PathValue("ns")
	list := v1alpha1.FunctionList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFunction + "List"},
		Items:    []v1alpha1.Function{},
	}
	for _, fn := range s.Reader.List() {
		if namespace == "" || fn.Namespace == namespace {
			list.Items = append(list.Items, *s.observed(fn))
		}
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *server) get(w http.ResponseWriter, r *http.Request) {
	fn, ok := s.Reader.Get(keyOf(r))
	if !ok {
		writeNotFound(w, keyOf(r))
		return
	}
	writeJSON(w, http.StatusOK, s.observed(fn))
}

// revisions lists those of the namespace that a selector of labels chooses, or all.
func (s *server) revisions(w http.ResponseWriter, r *http.Request) {
	chosen, err := labels.Parse(r.URL.Query().Get(labelSelector))
	if err != nil {
		writeError(w, http.StatusBadRequest, &Error{Reason: ReasonBadRequest, Message: fmt.Sprintf("%s: %v", labelSelector, err)})
		return
	}
	list := v1alpha1.FunctionRevisionList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFunctionRevision + "List"},
		Items:    []v1alpha1.FunctionRevision{},
	}
	for _, fn := range s.Reader.List() {
		if fn.Namespace != r.PathValue("ns") {
			continue
		}
		for _, revision := range s.Archive.Revisions(fn.Key()) {
			if chosen.Matches(labels.Set(revision.Labels)) {
				list.Items = append(list.Items, *revision)
			}
		}
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *server) apply(w http.ResponseWriter, r *http.Request) {
	fn, status, problem := readFunction(w, r)
	if problem != nil {
		writeError(w, status, problem)
		return
	}
	before, _ := s.Reader.Get(fn.Key())
	if r.URL.Query().Has(dryRun) {
		s.preview(w, fn, before)
		return
	}
	result, err := s.Store.Replace(file.Version(r.URL.Query().Get(basedOn)), fn)
	if err != nil {
		writeFailure(w, fn.Key(), err)
		return
	}
	kept, ok := s.Reader.Get(fn.Key())
	if !ok { // deleted since
		writeNotFound(w, fn.Key())
		return
	}
	status = http.StatusOK
	if result == file.Created {
		status = http.StatusCreated
	}
	writeJSON(w, status, Applied{Result: result, Function: s.observed(kept), Before: before})
}

// preview answers as apply would, and changes nothing.
func (s *server) preview(w http.ResponseWriter, fn, before *v1alpha1.Function) {
	result, after, err := s.Store.Preview(fn)
	if err != nil {
		writeFailure(w, fn.Key(), err)
		return
	}
	writeJSON(w, http.StatusOK, Applied{Result: result, Function: s.observed(after), Before: before})
}

// stillThere is how often it is looked whether a function is there whose log is followed.
const stillThere = 500 * time.Millisecond

// awaitDeletion calls deleted when the function is not there any more, unless ctx ends
// before.
func (s *server) awaitDeletion(ctx context.Context, key invocation.FunctionKey, deleted func()) {
	ticker := time.NewTicker(stillThere)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, ok := s.Reader.Get(key); !ok {
			deleted()
			return
		}
	}
}

// readFunction reads the one Function of a request, which may leave out what
// the path says.
func readFunction(w http.ResponseWriter, r *http.Request) (*v1alpha1.Function, int, *Error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, &Error{Reason: ReasonTooLarge,
			Message: fmt.Sprintf("the Function is larger than %d MiB; put its code into a folder and name that with code.path", maxManifest>>20)}
	}
	if err != nil {
		return nil, http.StatusBadRequest, &Error{Reason: ReasonBadRequest, Message: "the Function could not be read: " + err.Error() + "; send it again"}
	}
	functions, err := v1alpha1.Decode(body, "request")
	if err != nil {
		return nil, http.StatusUnprocessableEntity, &Error{Reason: ReasonInvalid, Message: err.Error()}
	}
	if len(functions) != 1 {
		return nil, http.StatusBadRequest, &Error{Reason: ReasonBadRequest,
			Message: fmt.Sprintf("the request holds %d Functions; apply them one by one", len(functions))}
	}
	fn, key := functions[0], keyOf(r)
	if fn.Namespace == "" {
		fn.Namespace = key.Namespace
	}
	if fn.Name == "" {
		fn.Name = key.Name
	}
	if fn.Key() != key {
		return nil, http.StatusBadRequest, &Error{Reason: ReasonBadRequest,
			Message: fmt.Sprintf("the Function is %s, but the path says %s; make them the same", fn.Key(), key)}
	}
	return fn, 0, nil
}

func (s *server) delete(w http.ResponseWriter, r *http.Request) {
	if err := s.Store.Delete(keyOf(r)); err != nil {
		writeFailure(w, keyOf(r), err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) decisions(w http.ResponseWriter, r *http.Request) {
	account, ok := s.Decisions.Report(keyOf(r))
	if !ok {
		writeNotFound(w, keyOf(r))
		return
	}
	writeJSON(w, http.StatusOK, account)
}

func (s *server) lookUpCall(w http.ResponseWriter, r *http.Request) {
	id, err := invocation.ParseID(r.PathValue("id"))
	if err != nil {
		writeError(w, http.StatusBadRequest, &Error{Reason: ReasonBadRequest, Message: err.Error()})
		return
	}
	story, known := s.CallLookup.LookUp(id)
	if !known {
		writeError(w, http.StatusNotFound, &Error{Reason: ReasonNotFound, Message: fmt.Sprintf(
			"no invocation %s has ended here lately: Windlass remembers the last few thousand since it was started, and none that still runs", id)})
		return
	}
	writeJSON(w, http.StatusOK, story)
}

func (s *server) log(w http.ResponseWriter, r *http.Request) {
	options, err := logOptions(r.URL.Query())
	if err != nil {
		writeError(w, http.StatusBadRequest, &Error{Reason: ReasonBadRequest, Message: err.Error()})
		return
	}
	if _, ok := s.Reader.Get(keyOf(r)); !ok {
		writeNotFound(w, keyOf(r))
		return
	}
	out := &logWriter{w: w, rc: http.NewResponseController(w)}
	ctx := r.Context()
	if options.Follow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go s.awaitDeletion(ctx, keyOf(r), cancel)
	}
	err = s.Logs.Follow(ctx, out, keyOf(r), options)
	switch {
	case err == nil && !out.begun:
		out.sendHead()
	case err != nil && !out.begun:
		writeError(w, http.StatusNotFound, &Error{Reason: ReasonNoLog, Message: err.Error()})
	case err != nil && r.Context().Err() == nil:
		// The only way to tell a client that the log is not whole.
		panic(http.ErrAbortHandler)
	}
}

// logWriter sends every write at once. The head goes out with the first one, so
// that until then the answer can still be an error.
type logWriter struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	begun bool
}

func (l *logWriter) sendHead() {
	l.begun = true
	l.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	l.w.WriteHeader(http.StatusOK)
}

func (l *logWriter) Write(p []byte) (int, error) {
	if !l.begun {
		l.sendHead()
	}
	n, err := l.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, l.rc.Flush()
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		writeError(w, http.StatusInternalServerError, &Error{Reason: ReasonInternal, Message: "the answer cannot be written: " + err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func writeError(w http.ResponseWriter, status int, e *Error) { writeJSON(w, status, e) }

func writeNotFound(w http.ResponseWriter, key invocation.FunctionKey) {
	writeError(w, http.StatusNotFound, &Error{Reason: ReasonNotFound, Message: fmt.Sprintf("there is no function %s", key)})
}

// writeFailure answers with an error of the store.
func writeFailure(w http.ResponseWriter, key invocation.FunctionKey, err error) {
	var invalid *file.InvalidError
	switch {
	case errors.Is(err, file.ErrNotFound):
		writeNotFound(w, key)
	case errors.Is(err, file.ErrConflict):
		writeError(w, http.StatusConflict, &Error{Reason: ReasonConflict,
			Message: fmt.Sprintf("function %s was changed by somebody else meanwhile; look at it, and make your change again", key)})
	case errors.As(err, &invalid):
		e := &Error{Reason: ReasonInvalid, Message: invalid.Error()}
		for _, p := range invalid.Problems {
			e.Details = append(e.Details, FieldProblem{Field: p.Field, Message: p.ErrorBody()})
		}
		writeError(w, http.StatusUnprocessableEntity, e)
	default:
		writeError(w, http.StatusInternalServerError, &Error{Reason: ReasonInternal, Message: err.Error()})
	}
}
