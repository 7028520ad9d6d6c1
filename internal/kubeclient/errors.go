package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Reason names the kind of an error.
type Reason string

// Reasons of an Error.
const (
	// ReasonNotFound says that no function has that name.
	ReasonNotFound Reason = "NotFound"
	// ReasonInvalid says that the Function is not valid.
	ReasonInvalid Reason = "Invalid"
	// ReasonConflict says that someone else has set a field, or is deleting
	// the Function.
	ReasonConflict Reason = "Conflict"
	// ReasonForbidden says that the user may not do this.
	ReasonForbidden Reason = "Forbidden"
	// ReasonNotInstalled says that the cluster knows no Functions.
	ReasonNotInstalled Reason = "NotInstalled"
	// ReasonUnreachable says that the cluster does not answer.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonAmbiguous says that pods of more than one namespace can be those of
	// Windlass.
	ReasonAmbiguous Reason = "Ambiguous"
	// ReasonNoPod says that no pod can answer.
	ReasonNoPod Reason = "NoPod"
	// ReasonRefused is everything else that the cluster answers.
	ReasonRefused Reason = "Refused"
)

// Error is what went wrong in or on the way to the cluster.
type Error struct {
	Reason Reason
	// Message explains to people what is wrong and what to do about it.
	Message string
	Err     error
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Unwrap is the error of the client library, if it was one.
func (e *Error) Unwrap() error { return e.Err }

// Is says whether an error has a reason.
func Is(err error, reason Reason) bool {
	var known *Error
	return errors.As(err, &known) && known.Reason == reason
}

// isRefusal says that the API server answered that it has not done what was asked.
// A server error or a lost answer leaves that open.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code >= 400 && answer.Status().Code < 500
}

// explain says what an error of the client library means for who asked about a
// function, or about a namespace if the key has no name.
func (c *cluster) explain(key invocation.FunctionKey, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return c.unreachable(err)
	}
	reason, message := c.reasonFor(key, err, answer.Status())
	return &Error{Reason: reason, Message: message, Err: err}
}

func (c *cluster) reasonFor(key invocation.FunctionKey, err error, status metav1.Status) (Reason, string) {
	switch {
	case isNoResource(err, status):
		return ReasonNotInstalled, fmt.Sprintf("Windlass is not installed in the cluster of the context %s: install it with helm install windlass charts/windlass --namespace windlass --create-namespace, or name another context with --context", c.context)
	case apierrors.IsNotFound(err) && status.Details != nil && status.Details.Kind == "namespaces":
		return ReasonRefused, fmt.Sprintf("there is no namespace %s in the cluster of the context %s: create it with kubectl create namespace %s, or name another with -n", key.Namespace, c.context, key.Namespace)
	case apierrors.IsNotFound(err):
		return ReasonNotFound, fmt.Sprintf("there is no function %s", key)
	case apierrors.IsInvalid(err):
		return ReasonInvalid, wrongFields(key, status)
	case apierrors.IsConflict(err):
		return ReasonConflict, conflicts(key, status)
	case apierrors.IsForbidden(err) && deniedUser.MatchString(status.Message):
		return ReasonForbidden, c.forbidden(key, status)
	case apierrors.IsUnauthorized(err):
		return ReasonForbidden, fmt.Sprintf("the cluster of the context %s does not know you: renew the credentials in the kubeconfig, or name another context with --context", c.context)
	}
	return ReasonRefused, fmt.Sprintf("the cluster of the context %s refused: %s; correct that, or ask the cluster's administrator", c.context, status.Message)
}

// isNoResource says that the server has no such kind, rather than no such object.
func isNoResource(err error, status metav1.Status) bool {
	if !apierrors.IsNotFound(err) || status.Details == nil {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// wrongFields has a line for each field.
func wrongFields(key invocation.FunctionKey, status metav1.Status) string {
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return fmt.Sprintf("function %s: %s; correct the manifest", key, status.Message)
	}
	var lines []string
	for _, cause := range status.Details.Causes {
		lines = append(lines, fmt.Sprintf("function %s: %s: %s", key, cause.Field, cause.Message))
	}
	return strings.Join(lines, "\n")
}

var otherManager = regexp.MustCompile(`conflict with "([^"]*)"`)

// onlyOurs says that an error is of fields that this command itself has set by other
// means, and of no others.
func onlyOurs(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return false
	}
	causes := answer.Status().Details.Causes
	for _, cause := range causes {
		found := otherManager.FindStringSubmatch(cause.Message)
		if cause.Type != metav1.CauseTypeFieldManagerConflict || found == nil || found[1] != string(FieldManager) {
			return false
		}
	}
	return len(causes) > 0
}

func conflicts(key invocation.FunctionKey, status metav1.Status) string {
	var lines []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			who := cause.Message
			if found := otherManager.FindStringSubmatch(who); found != nil {
				who = found[1]
			}
			lines = append(lines, fmt.Sprintf("function %s: %s was set by %s", key, strings.TrimPrefix(cause.Field, "."), who))
		}
	}
	if len(lines) == 0 {
		return fmt.Sprintf("function %s: %s; try again", key, status.Message)
	}
	return strings.Join(lines, "\n") + "\nleave such a field out and have it changed there, or take it over with --force-conflicts"
}

// deniedUser is in the message if rights are missing, not if an admission
// policy or a quota forbids.
var deniedUser = regexp.MustCompile(`User "[^"]*" cannot (\w+) resource "([^"]+)" in API group "([^"]*)"`)

func (c *cluster) forbidden(key invocation.FunctionKey, status metav1.Status) string {
	found := deniedUser.FindStringSubmatch(status.Message)
	verb, resource, where := found[1], found[2], "all namespaces"
	if found[3] != "" {
		resource += "." + found[3]
	}
	scope := "--all-namespaces"
	if key.Namespace != "" {
		where, scope = "the namespace "+key.Namespace, "-n "+key.Namespace
	}
	return fmt.Sprintf("you may not %s %s in %s with the context %s: ask its administrator for a role with this right, and check with kubectl auth can-i %s %s %s --context %s",
		verb, resource, where, c.context, verb, resource, scope, c.context)
}

func (c *cluster) unreachable(err error) error {
	cause, at := err, ""
	var of *url.Error
	if errors.As(err, &of) {
		cause = of.Err
		if u, parseErr := url.Parse(of.URL); parseErr == nil {
			at = " at " + u.Scheme + "://" + u.Host
		}
	}
	return &Error{Reason: ReasonUnreachable, Err: err, Message: fmt.Sprintf(
		"the cluster of the context %s%s does not answer: %v; check that it runs and can be reached with kubectl version --context %s, or name another context with --context",
		c.context, at, cause, c.context)}
}
