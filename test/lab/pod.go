package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/podtoken"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// Pod is one pod that the kubelet runs.
type Pod struct {
	// Function, Revision and CID say whose instance it is.
	Function, Revision, CID string
	kubelet                 *Kubelet
	object                  *corev1.Pod
	addr                    netip.Addr
	port                    string

	mu sync.Mutex
	// Space, agent and function are nil until the pod runs.
	space           *Space
	agent, function *Process
	// grace is closed when the pod is to end, and over when it is to end now.
	grace, over      chan struct{}
	graceSeconds     int64
	ending, powerOff bool
}

func newPod(k *Kubelet, object *corev1.Pod, addr netip.Addr, port string) *Pod {
	return &Pod{
		Function: object.Labels[wellknown.LabelFunction], Revision: object.Labels[wellknown.LabelRevision], CID: object.Labels[wellknown.LabelCID],
		kubelet: k, object: object, addr: addr, port: port,
		grace: make(chan struct{}), over: make(chan struct{}),
	}
}

// Agent is the agent's process, Program the function's, and Space the pod's
// network. They are there as long as the pod runs.
func (p *Pod) Agent() *Process { return p.agent }

// Program is the function's process.
func (p *Pod) Program() *Process { return p.function }

// Space is the pod's network.
func (p *Pod) Space() *Space { return p.space }

// Node is the name of the pod's node.
func (p *Pod) Node() string { return p.object.Spec.NodeName }

func (p *Pod) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agent != nil && p.agent.Alive() && !p.ending
}

// terminate begins the pod's end, which has so many seconds.
func (p *Pod) terminate(seconds *int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending {
		return
	}
	p.ending = true
	if seconds != nil {
		p.graceSeconds = *seconds
	}
	close(p.grace)
}

// kill ends the pod at once.
func (p *Pod) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	closeOnce(p.over)
}

// cutPower ends the pod at once, and nobody says so to the API server.
func (p *Pod) cutPower() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.powerOff = true
	closeOnce(p.over)
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// live runs the pod to its end.
func (p *Pod) live(ctx context.Context) {
	defer p.kubelet.removePod(p)
	if p.object.Spec.Containers[p.container(podspec.ContainerFunction)].Image == ImageMissing {
		p.report(ctx, corev1.PodPending, waiting(podspec.ContainerFunction, "ImagePullBackOff", "there is no such image"))
		p.untilDeleted(ctx)
	} else if err := p.start(ctx); err != nil {
		p.complain("starting", err)
		p.report(ctx, corev1.PodFailed)
		p.untilDeleted(ctx)
	} else {
		p.report(ctx, corev1.PodRunning, p.agent.status(podspec.ContainerAgent), p.function.status(podspec.ContainerFunction))
		p.watch(ctx)
		p.shutDown(ctx)
		p.space.Close()
	}
	p.mu.Lock()
	silent := p.powerOff
	p.mu.Unlock()
	if !silent && ctx.Err() == nil {
		p.kubelet.remove(ctx, p.object)
	}
}

// untilDeleted returns when the pod is to end.
func (p *Pod) untilDeleted(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-p.over:
	case <-p.grace:
	}
}

// watch tells of each process that ends by itself, and returns when the pod is to
// end. A pod whose processes have ended stays until somebody deletes it.
func (p *Pod) watch(ctx context.Context) {
	agent, function := p.agent.Ended(), p.function.Ended()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.over:
			return
		case <-p.grace:
			return
		case <-agent:
			agent = nil
		case <-function:
			function = nil
		}
		phase := corev1.PodRunning
		if agent == nil && function == nil {
			phase = corev1.PodFailed
		}
		p.mu.Lock()
		silent := p.powerOff
		p.mu.Unlock()
		if !silent {
			p.report(ctx, phase, p.agent.status(podspec.ContainerAgent), p.function.status(podspec.ContainerFunction))
		}
	}
}

// shutDown tells the agent to end and then the function, whose preStop hook waits
// for the agent to have finished its calls. A process that is left after the pod's grace
// is killed.
func (p *Pod) shutDown(ctx context.Context) {
	p.mu.Lock()
	seconds := p.graceSeconds
	p.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	go func() {
		select {
		case <-p.over:
			cancel()
		case <-limit.Done():
		}
	}()
	_ = p.agent.Stop(limit)
	_ = p.function.Stop(limit)
}

// start makes the pod's network and starts its processes.
func (p *Pod) start(ctx context.Context) error {
	space, err := openSpace(ctx, p.object.Name, p.port, p.addr)
	if err != nil {
		return err
	}
	if err := space.spread(ctx, serviceAddr, p.kubelet.lab.schedulerAddrs()); err != nil {
		space.Close()
		return err
	}
	token, err := p.token(ctx)
	if err != nil {
		space.Close()
		return err
	}
	config := p.kubelet.lab.Config
	dir := config.data("pods", string(p.object.UID))
	if err := writeAll(dir, map[string][]byte{"token": []byte(token)}); err != nil {
		space.Close()
		return err
	}
	functionEnv := append(p.environ(podspec.ContainerFunction), "LAB_LEDGER="+p.kubelet.lab.RunLog)
	agentEnv := append(p.environ(podspec.ContainerAgent), "WINDLASS_TOKEN_FILE="+dir+"/token")
	image := p.object.Spec.Containers[p.container(podspec.ContainerFunction)].Image
	function, err := space.Start(Program{Path: config.Program(path.Base(image)), Environ: functionEnv, Log: config.logOf("functions")})
	if err != nil {
		space.Close()
		return err
	}
	agent, err := space.Start(Program{Path: p.kubelet.agentProgram(), Environ: agentEnv, Log: config.logOf("agents")})
	if err != nil {
		function.Kill()
		space.Close()
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.space, p.agent, p.function = space, agent, function
	return nil
}

// token is one of the pod's account for Windlass, bound to the pod.
func (p *Pod) token(ctx context.Context) (string, error) {
	seconds := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{podtoken.Audience}, ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.object.Name, UID: p.object.UID},
	}}
	got, err := p.kubelet.core.CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(ctx, p.object.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("a token for pod %s: %w", p.object.Name, err)
	}
	return got.Status.Token, nil
}

func (p *Pod) container(name string) int {
	for i := range p.object.Spec.Containers {
		if p.object.Spec.Containers[i].Name == name {
			return i
		}
	}
	return 0
}

// environ is a container's environment, in which Kubernetes reads $$ as $.
func (p *Pod) environ(container string) []string {
	var environ []string
	for _, v := range p.object.Spec.Containers[p.container(container)].Env {
		environ = append(environ, v.Name+"="+strings.ReplaceAll(v.Value, "$$", "$"))
	}
	return environ
}

// report writes the pod's status, unless its object is gone.
func (p *Pod) report(ctx context.Context, phase corev1.PodPhase, containers ...corev1.ContainerStatus) {
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	status := corev1.PodStatus{
		Phase: phase, PodIP: p.addr.String(), ContainerStatuses: containers,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.object.UID}, "status": status})
	if err != nil {
		panic(err) // It is plain data.
	}
	pods := p.kubelet.core.CoreV1().Pods(p.object.Namespace)
	if _, err := pods.Patch(ctx, p.object.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil && ctx.Err() == nil {
		p.complain("the status of", err)
	}
}

// complain tells of what keeps a pod from living, unless it is its deletion.
func (p *Pod) complain(what string, err error) {
	if !apierrors.IsNotFound(err) {
		fmt.Fprintf(os.Stderr, "lab: %s pod %s: %v\n", what, p.object.Name, err)
	}
}

func waiting(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

// status is what the kubelet says of a container whose process this is.
func (p *Process) status(name string) corev1.ContainerStatus {
	if p.Alive() {
		return corev1.ContainerStatus{Name: name, Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
	}
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(p.ExitCode()), FinishedAt: metav1.Now()}}}
}

// Hurt sends a signal to the pod's agent and function both.
func (p *Pod) Hurt(signal syscall.Signal) error {
	if p.agent == nil {
		return errors.New("the pod does not run")
	}
	p.agent.Signal(signal)
	p.function.Signal(signal)
	return nil
}
