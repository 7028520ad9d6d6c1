package kube

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// logLines is how many log lines an Exit carries.
const logLines = 20

// reasonStopped is that of an instance that was stopped.
const reasonStopped = "stopped"

// podOutcome is what a pod says about its instance.
type podOutcome struct {
	// ended says that the instance has ended, or will not begin.
	ended bool
	// code, reason, logTail and logEmpty are those of the Exit.
	code     string
	reason   string
	logTail  []string
	logEmpty bool
	// avoidNode says that it is better to avoid the node for a while.
	avoidNode bool
}

// classifyPod says whether the instance of a pod has ended, and why. nodeReady is
// whether the node says that it is ready.
func classifyPod(pod *corev1.Pod, nodeReady bool) podOutcome {
	if v := classifyRefusal(pod); v.ended {
		return v
	}
	function, agent := container(pod, podspec.ContainerFunction), container(pod, podspec.ContainerAgent)
	for _, c := range []containerView{function, agent} {
		if v := classifyWaiting(c); v.ended {
			return v
		}
	}
	switch {
	case endedFirst(function, agent):
		return classifyFunction(pod, function)
	case agent.ended() != nil:
		return classifyAgent(pod, agent, function)
	case pod.DeletionTimestamp != nil && !nodeReady:
		return podOutcome{ended: true, code: v1alpha1.ReasonNodeLost, avoidNode: true,
			reason: fmt.Sprintf("the node %s is not ready and does not end the pod", pod.Spec.NodeName)}
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return podOutcome{ended: true, reason: "the pod has ended; the cluster does not say why"}
	}
	return podOutcome{}
}

// mountTimeout is how long a pod's volumes may well take.
const mountTimeout = 5 * time.Second

// unmounted names the volumes that a pod may still wait for; empty if it waits for none. The
// kubelet makes neither a network nor a container before all are mounted. Which one is not,
// it says in Events only, which Windlass may not read.
func unmounted(pod *corev1.Pod) string {
	if pod == nil || hasSandbox(pod) || len(pod.Status.ContainerStatuses) == 0 {
		return ""
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting == nil || c.State.Waiting.Reason != "ContainerCreating" {
			return ""
		}
	}
	var volumes []string
	for i := range pod.Spec.Volumes {
		if object := objectOf(&pod.Spec.Volumes[i]); object != "" {
			volumes = append(volumes, object)
		}
	}
	if len(volumes) == 0 {
		return ""
	}
	return fmt.Sprintf("the node %s did not mount the pod's volumes, or give it a network, in time; it needs %s in the namespace %s: make what is missing; Events say what failed (kubectl get events -n %s --field-selector reason=FailedMount)",
		pod.Spec.NodeName, strings.Join(volumes, ", "), pod.Namespace, pod.Namespace)
}

// objectOf is the object that a volume needs; empty if it needs none.
func objectOf(v *corev1.Volume) string {
	needed := func(kind, name string, optional *bool) string {
		if optional != nil && *optional {
			return ""
		}
		return fmt.Sprintf("the %s %q (%s)", kind, name, podspec.VolumeTitle(v.Name))
	}
	switch {
	case v.Secret != nil:
		return needed("Secret", v.Secret.SecretName, v.Secret.Optional)
	case v.ConfigMap != nil:
		return needed("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Optional)
	case v.PersistentVolumeClaim != nil:
		return needed("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName, nil)
	}
	return ""
}

// classifyEnd says why an instance ended whose pod reports this outcome. After a stop, the
// pod's report may be a consequence of the stop, whose cause the caller knows.
func classifyEnd(pod *corev1.Pod, v podOutcome, stopped bool) podOutcome {
	if stopped {
		nodeLost := v.code == v1alpha1.ReasonNodeLost && v.avoidNode
		if !nodeLost && v.code != v1alpha1.ReasonOutOfMemory && v.code != v1alpha1.ReasonFunctionExited {
			v = podOutcome{reason: reasonStopped, logTail: v.logTail, logEmpty: v.logEmpty}
		}
	} else if d := disrupted(pod); d.ended && pod.DeletionTimestamp != nil {
		d.logTail = v.logTail
		v = d
	}
	return v
}

// classifyMissing says why an instance ended whose pod does not exist, and whose end was not observed.
func classifyMissing(stopped bool) podOutcome {
	if stopped {
		return podOutcome{reason: reasonStopped}
	}
	return podOutcome{ended: true, code: v1alpha1.ReasonNodeLost, reason: "the pod was deleted, and not by Windlass"}
}

// classifyGone says why the instance of a deleted pod ended.
func classifyGone(pod *corev1.Pod) podOutcome {
	if v := classifyPod(pod, true); v.ended {
		return v
	}
	if v := disrupted(pod); v.ended {
		return v
	}
	return podOutcome{ended: true, code: v1alpha1.ReasonNodeLost, reason: "the pod was deleted, and not by Windlass"}
}

// classifyRefusal is about pods that the kubelet did not take, or evicted.
func classifyRefusal(pod *corev1.Pod) podOutcome {
	why := pod.Status.Reason
	if pod.Status.Phase != corev1.PodFailed || why == "" {
		return podOutcome{}
	}
	if why == "NodeLost" {
		return podOutcome{ended: true, code: v1alpha1.ReasonNodeLost, avoidNode: true,
			reason: fmt.Sprintf("the node %s was lost", pod.Spec.NodeName)}
	}
	if strings.HasPrefix(why, "OutOf") {
		// The kubelet counts pods until they have ended, including those of others. The node
		// is healthy: it has room again once they have ended.
		return podOutcome{ended: true, code: v1alpha1.ReasonNodeFull,
			reason: fmt.Sprintf("the node %s had no room for the pod any more: %s", pod.Spec.NodeName, joinReason(why, pod.Status.Message))}
	}
	// A function that exceeds its disk limit would be evicted elsewhere, too.
	own := why == "Evicted" && !strings.Contains(pod.Status.Message, "node was low on resource")
	return podOutcome{ended: true, code: v1alpha1.ReasonNodeRefused, avoidNode: !own, logTail: functionLog(pod),
		reason: fmt.Sprintf("the node %s refused the pod: %s", pod.Spec.NodeName, joinReason(why, pod.Status.Message))}
}

// disrupted classifies pods that the cluster ended for a reason of its own.
func disrupted(pod *corev1.Pod) podOutcome {
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
			continue
		}
		v := podOutcome{ended: true, code: v1alpha1.ReasonNodeRefused,
			reason: fmt.Sprintf("the pod was evicted from the node %s: %s", pod.Spec.NodeName, joinReason(c.Reason, c.Message))}
		if c.Reason == "DeletionByTaintManager" || c.Reason == "DeletionByPodGC" {
			v.code, v.avoidNode = v1alpha1.ReasonNodeLost, true
			v.reason = fmt.Sprintf("the node %s was lost: %s", pod.Spec.NodeName, joinReason(c.Reason, c.Message))
		}
		return v
	}
	return podOutcome{}
}

// containerView is one container of a pod.
type containerView struct {
	name  string
	image string
	state corev1.ContainerState
}

func (c containerView) ended() *corev1.ContainerStateTerminated { return c.state.Terminated }

// title is what people know the container as.
func (c containerView) title() string {
	if c.name == podspec.ContainerAgent {
		return "the agent"
	}
	return "the function"
}

func container(pod *corev1.Pod, name string) containerView {
	c := containerView{name: name}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			c.image = pod.Spec.Containers[i].Image
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			c.state = pod.Status.ContainerStatuses[i].State
		}
	}
	return c
}

// classifyWaiting is about containers that cannot start.
func classifyWaiting(c containerView) podOutcome {
	w := c.state.Waiting
	if w == nil {
		return podOutcome{}
	}
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
		"ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return podOutcome{ended: true, code: v1alpha1.ReasonImagePullFailed,
			reason: fmt.Sprintf("the image %q of %s cannot be had: %s", c.image, c.title(), joinReason(w.Reason, w.Message))}
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return classifyConfig(c, w)
	}
	return podOutcome{}
}

func classifyConfig(c containerView, w *corev1.ContainerStateWaiting) podOutcome {
	v := podOutcome{ended: true, code: v1alpha1.ReasonPodRefused,
		reason: fmt.Sprintf("the container of %s cannot be created: %s", c.title(), joinReason(w.Reason, w.Message))}
	switch {
	case strings.Contains(w.Message, "runAsNonRoot") || strings.Contains(w.Message, "run as root"):
		v.reason = fmt.Sprintf("the image %q of %s would run as root, which Windlass does not allow, and something in this cluster removed the user id that Windlass gives it: "+
			"exempt the function's pods from that policy, or give the image a numeric USER other than 0 (%s)", c.image, c.title(), w.Message)
	case strings.Contains(w.Message, "not found") || strings.Contains(w.Message, "couldn't find key"):
		v.code = v1alpha1.ReasonConfigMissing
		v.reason = fmt.Sprintf("%s names something that is missing: %s", c.title(), w.Message)
	case strings.Contains(w.Message, "deadline exceeded") || strings.Contains(w.Message, "failed to sync"):
		// The kubelet keeps trying. It waits for a Secret or a ConfigMap of the environment for a
		// second, and says "failed to sync secret cache" if the API server takes longer.
		return podOutcome{}
	}
	return v
}

// endedFirst says whether the function's end is what ended the instance. Times of pods
// have a resolution of one second: on a tie, an agent that left as it should counts as
// the first, unless the function's status shows that it was not asked to stop.
func endedFirst(function, agent containerView) bool {
	f, a := function.ended(), agent.ended()
	switch {
	case f == nil || a == nil:
		return f != nil
	case f.Reason == reasonOOMKilled:
		return true
	case f.FinishedAt.Equal(&a.FinishedAt):
		return a.ExitCode != 0 || !endedOnSignal(f.ExitCode)
	}
	return f.FinishedAt.Before(&a.FinishedAt)
}

// endedOnSignal reports whether a program may end with this status when it is asked to stop:
// with success, or killed by SIGKILL or SIGTERM.
func endedOnSignal(status int32) bool {
	return status == 0 || status == 128+int32(syscall.SIGKILL) || status == 128+int32(syscall.SIGTERM)
}

// functionStatusPending says whether the agent has ended and it is not known yet how the function
// did, although that will follow: the kubelet reports the one it notices first.
func functionStatusPending(pod *corev1.Pod) bool {
	function := container(pod, podspec.ContainerFunction)
	return container(pod, podspec.ContainerAgent).ended() != nil && function.state.Running != nil
}

// partEnded says whether a container of the pod has ended, or the pod has.
func partEnded(pod *corev1.Pod) bool {
	return container(pod, podspec.ContainerAgent).ended() != nil || container(pod, podspec.ContainerFunction).ended() != nil ||
		pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// reasonOOMKilled is the kubelet's word.
const reasonOOMKilled = "OOMKilled"

func classifyFunction(pod *corev1.Pod, function containerView) podOutcome {
	t := function.ended()
	v := podOutcome{ended: true, code: v1alpha1.ReasonFunctionExited, logTail: lastLines(t.Message), logEmpty: wroteNothing(t)}
	switch t.Reason {
	case reasonOOMKilled:
		v.code, v.reason = v1alpha1.ReasonOutOfMemory, outOfMemory(pod)
	case "ContainerStatusUnknown":
		return lostContainer(pod)
	case "StartError", "ContainerCannotRun":
		v.reason, v.logTail, v.logEmpty = "the function's program cannot be run: "+t.Message, nil, false
	default:
		v.reason = "the function " + describe(t)
	}
	return v
}

func classifyAgent(pod *corev1.Pod, agent, function containerView) podOutcome {
	t := agent.ended()
	if t.Reason == "ContainerStatusUnknown" {
		return lostContainer(pod)
	}
	v := podOutcome{ended: true, reason: "the agent " + describe(t)}
	if f := function.ended(); f != nil {
		v.logTail, v.logEmpty = lastLines(f.Message), wroteNothing(f)
	}
	if lines := lastLines(t.Message); t.ExitCode != 0 && len(lines) > 0 {
		v.reason += ": " + lines[len(lines)-1]
	}
	return v
}

func lostContainer(pod *corev1.Pod) podOutcome {
	return podOutcome{ended: true, code: v1alpha1.ReasonNodeLost, avoidNode: true,
		reason: fmt.Sprintf("the node %s lost the pod's containers", pod.Spec.NodeName)}
}

func outOfMemory(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		limit, limited := pod.Spec.Containers[i].Resources.Limits[corev1.ResourceMemory]
		if pod.Spec.Containers[i].Name == podspec.ContainerFunction && limited {
			return fmt.Sprintf("the function used more memory than its limit of %s: raise spec.template.resources.limits.memory", limit.String())
		}
	}
	return fmt.Sprintf("the node %s ran out of memory and killed the function, which has no limit: raise spec.template.resources.requests.memory to what it needs", pod.Spec.NodeName)
}

// describe says how a container ended.
func describe(t *corev1.ContainerStateTerminated) string {
	if n := t.ExitCode - 128; n > 0 && n < 65 {
		return fmt.Sprintf("was killed by signal %v", syscall.Signal(n))
	}
	return fmt.Sprintf("exited with status %d", t.ExitCode)
}

func functionLog(pod *corev1.Pod) []string {
	if t := container(pod, podspec.ContainerFunction).ended(); t != nil {
		return lastLines(t.Message)
	}
	return nil
}

// wroteNothing reports whether a container is known to have an empty log: the kubelet reads only
// that of one that failed.
func wroteNothing(t *corev1.ContainerStateTerminated) bool {
	return t.ExitCode != 0 && len(lastLines(t.Message)) == 0
}

// lastLines are the last lines of a message.
func lastLines(message string) []string {
	message = strings.TrimRight(message, "\n")
	if message == "" {
		return nil
	}
	lines := strings.Split(message, "\n")
	return lines[max(0, len(lines)-logLines):]
}

// joinReason is a reason with its message, if that adds something.
func joinReason(reason, message string) string {
	if message == "" || message == reason {
		return reason
	}
	return reason + ": " + message
}
