package node

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/internal/podtoken"
	"github.com/windlass-dev/windlass/pkg/nodeagent"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// podIdentifier knows the pods of a node by their tokens.
type podIdentifier struct {
	verify func(token string) (podtoken.Identity, error)
	// namespaces are those of functions; none means all.
	namespaces []string
	tree       *cgroups.Tree
	journal    *cgroups.Journal
	// holds says that batch is kept back.
	holds bool
}

// Identify implements nodeagent.Identifier. Which pod an agent is in says its token. Only the name
// of the function and its concurrency are the agent's word. The name chooses among what is known of the
// functions of its namespace, and nothing else. With another concurrency than 1 an instance computes
// without asking, which a lie gains as little as that setting in the function's manifest. Agents
// that do not say it are of releases before, and may compute as they did.
func (p *podIdentifier) Identify(_ context.Context, hello nodeagent.Hello, _ net.Addr) (nodeagent.Instance, error) {
	pod, err := p.verify(hello.Token)
	if err == nil {
		err = p.check(hello, pod)
	}
	switch {
	case errors.Is(err, podtoken.ErrInvalid):
		return nodeagent.Instance{}, status.Error(codes.Unauthenticated, err.Error())
	case errors.Is(err, podtoken.ErrUnavailable):
		return nodeagent.Instance{}, status.Error(codes.Unavailable, err.Error())
	case err != nil:
		return nodeagent.Instance{}, err
	}
	folder, group, err := p.openGroup(pod)
	if err != nil {
		return nodeagent.Instance{}, err
	}
	is := nodeagent.Instance{
		Namespace: pod.Namespace, Function: hello.Function, Name: pod.PodName, Key: pod.PodUID, Group: group,
		MustAsk: hello.Concurrency == 1,
	}
	if p.holds {
		is.Waited = group.Waited
		is.OpenHold = func() (nodeagent.Hold, error) { return p.tree.OpenHold(folder, hello.Cgroup, p.journal) }
	}
	return is, nil
}

// check compares what an agent says with what its token says.
func (p *podIdentifier) check(hello nodeagent.Hello, pod podtoken.Identity) error {
	switch {
	case hello.Namespace != pod.Namespace:
		return status.Errorf(codes.PermissionDenied, "the token is of a pod of the namespace %s", pod.Namespace)
	case len(p.namespaces) > 0 && !slices.Contains(p.namespaces, pod.Namespace):
		return status.Errorf(codes.PermissionDenied, "functions do not run in the namespace %s", pod.Namespace)
	case len(validation.IsDNS1123Label(hello.Function)) > 0:
		return status.Error(codes.InvalidArgument, "that is no name of a function")
	}
	return nil
}

// openGroup opens the control group of a pod.
func (p *podIdentifier) openGroup(pod podtoken.Identity) (folder cgroups.Folder, group *cgroups.Group, err error) {
	if !p.tree.Counts() {
		return folder, nil, status.Errorf(codes.Unavailable, "the node agent cannot read the control groups of pods: %s", p.tree)
	}
	folder, err = p.tree.FindPod(pod.PodUID)
	if errors.Is(err, fs.ErrNotExist) {
		return folder, nil, status.Errorf(codes.NotFound, "the pod %s/%s has no control group on this node", pod.Namespace, pod.PodName)
	}
	if err == nil {
		group, err = p.tree.Open(folder, p.journal)
	}
	return folder, group, err
}
