package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// What a function may write to its node's disk: in /tmp, and in all with its logs
// and what it changes of its image.
var (
	tmpLimit  = resource.MustParse("512Mi")
	diskLimit = resource.MustParse("1Gi")
)

func podSecurity(in Input) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(in.Config.UserIDs.Of(in.Function.Namespace)),
		RunAsGroup:     new(GroupID),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if writesClaim(in.Function) {
		// To look at all files of a large volume at each start would take minutes.
		security.FSGroup, security.FSGroupChangePolicy = new(GroupID), new(corev1.FSGroupChangeOnRootMismatch)
	}
	return security
}

func containerSecurity(user int64, readOnlyRoot bool) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		RunAsUser:                new(user),
		RunAsGroup:               new(GroupID),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(readOnlyRoot),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func agentContainer(in Input) corev1.Container {
	return corev1.Container{
		Name:            ContainerAgent,
		Image:           in.Config.AgentImage,
		ImagePullPolicy: in.Config.PullPolicy,
		Env:             agentEnv(in),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(in.Config.AgentRequests.MilliCPU, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(in.Config.AgentRequests.Memory, resource.BinarySI),
			},
			Limits: corev1.ResourceList{
				corev1.ResourceMemory: *resource.NewQuantity(in.Config.AgentMemoryLimit, resource.BinarySI),
			},
		},
		VolumeMounts:             []corev1.VolumeMount{{Name: volumeAgentToken, MountPath: agentTokenDir, ReadOnly: true}},
		SecurityContext:          containerSecurity(AgentUserID, true),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func functionContainer(in Input) corev1.Container {
	spec := &in.Function.Spec
	c := corev1.Container{
		Name:            ContainerFunction,
		Image:           spec.Template.Image,
		ImagePullPolicy: in.Config.PullPolicy,
		Command:         literals(spec.Template.Command),
		Args:            literals(spec.Template.Args),
		Env:             functionEnv(in),
		EnvFrom:         envFrom(spec.Template.EnvFrom),
		Resources:       resources(in.Function),
		VolumeMounts:    functionMounts(in.Function),
		SecurityContext: containerSecurity(in.Config.UserIDs.Of(in.Function.Namespace), false),
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/drained", Port: intstr.FromInt32(DrainPort),
		}}},
		// The end of the log comes with the pod's status.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	if in.Runtime != nil {
		c.Image = in.Runtime.Spec.Image
		c.Command = literals(in.Runtime.Spec.Command)
		c.WorkingDir = TaskRoot
	}
	return c
}

// resources are the function's. By default it requests no disk, because nodes that do not
// account for disk have none to give, and it is limited to what it may write and what its
// empty folders may hold.
func resources(f *v1alpha1.Function) corev1.ResourceRequirements {
	r := &f.Spec.Template.Resources
	disk := resource.Quantity{Format: resource.BinarySI}
	if asked, requested := r.Requests[corev1.ResourceEphemeralStorage]; requested {
		disk = asked
	}
	most := diskLimit.DeepCopy()
	most.Add(emptyDisk(f))
	if disk.Cmp(most) > 0 {
		most = disk
	}
	return corev1.ResourceRequirements{Requests: withDisk(r.Requests, disk), Limits: withDisk(r.Limits, most)}
}

// withDisk is a list that says something about disk.
func withDisk(list corev1.ResourceList, disk resource.Quantity) corev1.ResourceList {
	out := list.DeepCopy()
	if out == nil {
		out = make(corev1.ResourceList, 1)
	}
	if _, said := out[corev1.ResourceEphemeralStorage]; !said {
		out[corev1.ResourceEphemeralStorage] = disk.DeepCopy()
	}
	return out
}

// literal makes Kubernetes leave a text as it is, which otherwise replaces
// $(NAME) by the value of a variable.
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

func literals(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = literal(s)
	}
	return out
}
