package podspec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

const (
	// ContainerAgent is the name of the agent's container.
	ContainerAgent = "agent"
	// ContainerFunction is the name of the function's.
	ContainerFunction = "function"

	// AnnotationDecided is when the instance was launched, as RFC 3339 with fractions of a
	// second.
	AnnotationDecided = v1alpha1.GroupName + "/decided"

	// DefaultTokenAudience is for whom the agents' tokens are.
	DefaultTokenAudience = "windlass-scheduler"

	// TaskRoot is the folder of a function's code.
	TaskRoot = "/var/task"
	// DefaultPort is where a function listens that does not say.
	DefaultPort int32 = 8080
	// LambdaPort is where the agent serves the Lambda Runtime API.
	LambdaPort int32 = 9001
	// DrainPort is where the agent answers that it has drained.
	DrainPort int32 = 9090

	// MaxGrace bounds the grace period of a pod, whatever the function's timeout is.
	MaxGrace = time.Hour
	// EndedGrace is the grace period, in seconds, of a pod whose agent or function has ended, or
	// that never had calls: nothing waits for the rest.
	EndedGrace int64 = 2
	// graceBeyondTimeout is for the result's way back and for the end of the
	// processes.
	graceBeyondTimeout = 10 * time.Second

	// lostNodePatience is how long a pod stays on a node that is not ready or
	// not reachable.
	lostNodePatience int64 = 5
)

// Config is what all pods of a scheduler have in common.
type Config struct {
	// AgentImage is the agent's image.
	AgentImage string
	// AgentRequests is what the agent's container requests.
	AgentRequests placement.Amount
	// AgentMemoryLimit bounds the agent's memory, in bytes. Callers' bodies and the
	// function's requests to its agent are in it: without a bound a function would
	// have its agent's memory besides its own.
	AgentMemoryLimit int64
	// UserNamespaces gives each pod users of its own, so that what the kernel counts
	// for each user is not shared with other pods of the node.
	UserNamespaces bool
	// UserIDs are the users of functions, by namespace.
	UserIDs UserIDs
	// SchedulerAddr is the address of any scheduler, host:port, and OwnerAddr that of the one
	// that launches the pods, which agents try first; it may be empty.
	SchedulerAddr string
	OwnerAddr     string
	// NodeAddr is the address at which an instance reaches the node agent of its node, host:port;
	// empty for none. NodeTokenAudience is for whom the tokens for node agents are.
	NodeAddr, NodeTokenAudience string
	// CA is the certificate authority of schedulers and gateways, in PEM.
	CA string
	// TLSDomain is what the names in their certificates end in, mtls.Domain.
	TLSDomain string
	// PullPolicy is that of all images; empty leaves it to Kubernetes, which
	// asks the registry each time for images with the tag latest or none.
	PullPolicy corev1.PullPolicy
	// TokenAudience is for whom the agents' tokens are; empty means
	// DefaultTokenAudience.
	TokenAudience string
}

// Validate names every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.AgentImage == "" {
		errs = append(errs, errors.New("podspec: AgentImage is empty: name the agent's image"))
	}
	if c.SchedulerAddr == "" {
		errs = append(errs, errors.New("podspec: SchedulerAddr is empty: name the schedulers' Service, host:port"))
	}
	if c.NodeAddr != "" && c.NodeTokenAudience == "" {
		errs = append(errs, errors.New("podspec: NodeTokenAudience is empty: say for whom the tokens for node agents are"))
	}
	if c.CA != "" && c.TLSDomain == "" {
		errs = append(errs, errors.New("podspec: TLSDomain is empty: say which names the CA's certificates have, such as windlass.my-namespace.windlass"))
	}
	if c.AgentRequests.MilliCPU < 0 || c.AgentRequests.Memory < 0 {
		errs = append(errs, errors.New("podspec: AgentRequests is negative: write for example 10m and 32Mi"))
	}
	if c.AgentMemoryLimit <= 0 || c.AgentMemoryLimit < c.AgentRequests.Memory {
		errs = append(errs, fmt.Errorf("podspec: AgentMemoryLimit %d is not positive, or below what the agent requests: write for example 256Mi", c.AgentMemoryLimit))
	}
	if err := c.UserIDs.Validate(c.UserNamespaces); err != nil {
		errs = append(errs, fmt.Errorf("podspec: UserIDs: %w", err))
	}
	switch c.PullPolicy {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		errs = append(errs, fmt.Errorf("podspec: PullPolicy %q is none of Always, IfNotPresent and Never", c.PullPolicy))
	}
	return errors.Join(errs...)
}

// Input is what a pod depends on.
type Input struct {
	Config Config
	// Function has its defaults. It is not changed.
	Function *v1alpha1.Function
	// Runtime is the function's, or nil if it has none.
	Runtime *v1alpha1.ClusterRuntime
	CID     invocation.CID
	// Node is where the pod runs.
	Node string
	// Decided is when it was launched.
	Decided time.Time
}

// Pod is the pod of an instance. An error says which setting of the function cannot run in a
// cluster and what to do about it.
func Pod(in Input) (*corev1.Pod, error) {
	if err := checkInput(in); err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: podMeta(in), Spec: podSpec(in)}
	pod.Spec.Containers = []corev1.Container{agentContainer(in), functionContainer(in)}
	return pod, nil
}

// podSpec is the specification but for the containers.
func podSpec(in Input) corev1.PodSpec {
	f := in.Function
	spec := corev1.PodSpec{
		NodeName:                      in.Node,
		RestartPolicy:                 corev1.RestartPolicyNever,
		Volumes:                       volumes(in),
		ServiceAccountName:            cmp.Or(f.Spec.Template.ServiceAccountName, "default"),
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		ShareProcessNamespace:         new(false),
		TerminationGracePeriodSeconds: new(grace(f)),
		SecurityContext:               podSecurity(in),
		Tolerations:                   tolerations(f),
		PriorityClassName:             f.Spec.Template.Placement.PriorityClassName,
	}
	if in.Config.UserNamespaces {
		spec.HostUsers = new(false)
	}
	if name := f.Spec.Template.Placement.RuntimeClassName; name != "" {
		spec.RuntimeClassName = &name
	}
	for _, secret := range f.Spec.Template.ImagePullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret.Name})
	}
	return spec
}

// checkInput refuses what runs only in local mode, or nowhere.
func checkInput(in Input) error {
	f, spec := in.Function, &in.Function.Spec
	switch {
	case spec.Template.RuntimeRef.Name != "" && in.Runtime == nil:
		return fmt.Errorf("spec.template.runtimeRef: there is no ClusterRuntime %q: correct the name or create it", spec.Template.RuntimeRef.Name)
	case spec.Template.RuntimeRef.Name == "" && spec.Template.Image == "":
		return errors.New("spec.template.image is missing: a cluster runs images and runtimes; only local mode runs a command alone")
	case functionPort(f) == LambdaPort || functionPort(f) == DrainPort:
		return fmt.Errorf("spec.template.port %d is taken by the agent: choose another one", functionPort(f))
	}
	return checkCode(in)
}

func checkCode(in Input) error {
	code := in.Function.Spec.Template.Code
	switch {
	case code == nil:
		return nil
	case code.Path != "":
		return errors.New("spec.template.code.path needs local mode: put the source into code.inline or a ConfigMap, or build an image")
	case code.Inline == "" && code.ConfigMapRef.Name == "":
		return errors.New("spec.template.code is empty: give code.inline or code.configMapRef, or remove code")
	case code.Inline != "" && in.Runtime == nil:
		return errors.New("spec.template.code.inline needs a runtime that loads it: add runtimeRef, or build an image")
	case code.Inline != "" && in.Runtime.Spec.FileExtension == "":
		return fmt.Errorf("spec.template.code.inline: the ClusterRuntime %s does not say its fileExtension: put the source into a ConfigMap", in.Runtime.Name)
	}
	return nil
}

func podMeta(in Input) metav1.ObjectMeta {
	f := in.Function
	m := metav1.ObjectMeta{
		Name:      Name(f.Name, string(f.UID), in.CID),
		Namespace: f.Namespace,
		// Ours come last, and win.
		Labels: joined(f.Spec.Template.Metadata.Labels, map[string]string{
			wellknown.LabelFunction:    f.Name,
			wellknown.LabelFunctionUID: f.FunctionUID(),
			wellknown.LabelCID:         string(in.CID),
			wellknown.LabelRevision:    f.Revision(),
			wellknown.LabelRevisionUID: string(f.UID),
			wellknown.LabelManagedBy:   wellknown.ManagedBy,
			wellknown.LabelComponent:   wellknown.ComponentFunction,
		}),
		Annotations:     joined(f.Spec.Template.Metadata.Annotations, annotations(in.Decided)),
		OwnerReferences: []metav1.OwnerReference{ownerOf(f)},
	}
	if inlineCode(f) != "" {
		m.Annotations[wellknown.AnnotationCode] = inlineCode(f)
	}
	return m
}

func joined(theirs, ours map[string]string) map[string]string {
	all := make(map[string]string, len(theirs)+len(ours))
	maps.Copy(all, theirs)
	maps.Copy(all, ours)
	return all
}

func annotations(decided time.Time) map[string]string {
	return map[string]string{
		"kubectl.kubernetes.io/default-container": ContainerFunction,
		AnnotationDecided:                         decided.UTC().Format(time.RFC3339Nano),
	}
}

// ownerOf is the FunctionRevision of a unit. A function without revisions, which exists only
// in a cluster without a controller, owns its pods itself.
func ownerOf(f *v1alpha1.Function) metav1.OwnerReference {
	if revision := f.FunctionRevisionName(); revision != "" {
		return owner(v1alpha1.KindFunctionRevision, revision, f.UID)
	}
	return owner(v1alpha1.KindFunction, f.Name, f.UID)
}

func owner(kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.APIVersion, Kind: kind, Name: name, UID: uid,
		Controller: new(true), BlockOwnerDeletion: new(false),
	}
}

// grace is how long the pod may take to end, in seconds.
func grace(f *v1alpha1.Function) int64 {
	whole := f.Spec.Template.Timeout.Duration + graceBeyondTimeout
	return int64((min(whole, MaxGrace) + time.Second - 1) / time.Second)
}

// tolerations are the function's, plus those that remove a lost node's pods soon unless the
// function sets others.
func tolerations(f *v1alpha1.Function) []corev1.Toleration {
	all := append([]corev1.Toleration(nil), f.Spec.Template.Placement.Tolerations...)
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		said := false
		for _, t := range f.Spec.Template.Placement.Tolerations {
			said = said || (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if !said {
			all = append(all, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(lostNodePatience),
			})
		}
	}
	return all
}
