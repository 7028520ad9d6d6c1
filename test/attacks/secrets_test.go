package attacks

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
)

// What callers may not learn of the inside: what a function logs, which nodes, images
// and files there are.
const (
	nodeName    = "worker-17.internal"
	secretURL   = "postgres://admin:S3cr3tPassw0rd@db.internal:5432/prod"
	secretImage = "registry.internal/payroll:7"
	secretFile  = "/var/task/payroll/keys.py"
)

// Functions whose instances do not start: one writes a secret first, one has an image
// that cannot be pulled, and one fits nowhere.
const (
	leaking = "leaking"
	pulling = "pulling"
	vast    = "vast"
)

var secretAttacks = []attack{
	{"F105", "S4: what a function wrote as it failed to start", answered, fails(leaking, "CannotStart")},
	{"F105", "S4: the image and the node of a function that cannot be pulled", answered, fails(pulling, "CannotStart")},
	{"F105", "S4: nodes on which there is no room", answered, fails(vast, "NoCapacity", func(fn *v1alpha1.Function) {
		fn.Spec.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Ei")}
	})},
	{"F105", "S4: the last lines of a function that ends in a call", answered, answersWith(tellsNothing(502, "FunctionLost"), end(callwire.End{
		Failure: callwire.FailureFunctionLost, Detail: "the function ended on " + nodeName + "; its last log lines:\n" + secretURL,
	}))},
	{"F105", "S4: an answer that is none, in the agent's words", answered, answersWith(tellsNothing(502, "BadAnswer"),
		end(callwire.End{Failure: callwire.FailureBadAnswer, Detail: "read " + secretURL}))},
	{"F105", "S4: the stack trace of a handler's error", answered, answersWith(tellsNothing(502, "KeyError"), head(callwire.Head{
		Status: 502, ContentLength: -1, Whole: true, FunctionError: "Unhandled",
		Body: fmt.Appendf(nil, `{"errorMessage":"no such key","errorType":"KeyError","stackTrace":["File \"%s\", line 7, connect(\"%s\")"]}`, secretFile, secretURL),
	}))},
}

// fails calls a function that cannot run, and that is all that the caller learns.
func fails(function, reason string, change ...func(*v1alpha1.Function)) func(*platform) {
	return func(w *platform) {
		w.put(function, time.Minute, change...)
		tellsNothing(503, reason)(w, w.call("/function/"+function+".shop/"))
	}
}

// tellsNothing checks an answer that says what kind of failure it was, and no more.
func tellsNothing(status int, reason string) func(*platform, response) {
	return func(w *platform, r response) {
		w.Helper()
		told := fmt.Sprint(r.header) + r.body
		if r.status != status || !strings.Contains(told, reason) {
			w.Errorf("answered %d, %v: %s", r.status, r.err, told)
		}
		for _, secret := range []string{"worker-17", "S3cr3tPassw0rd", "db.internal", "registry.internal", "payroll", "MiB"} {
			if strings.Contains(told, secret) {
				w.Errorf("the caller learns %q: %s", secret, told)
			}
		}
	}
}
