package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// running is a pod both of whose containers run, changed as told.
func running(changes ...func(*corev1.Pod)) *corev1.Pod {
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "hello-1", Namespace: "shop", UID: "p-1"},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{
			{Name: podspec.ContainerAgent, Image: "agent:1"},
			{Name: podspec.ContainerFunction, Image: "app:1"},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: podspec.ContainerAgent, State: state},
			{Name: podspec.ContainerFunction, State: state},
		}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func with(name string, state corev1.ContainerState) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for i := range pod.Status.ContainerStatuses {
			if pod.Status.ContainerStatuses[i].Name == name {
				pod.Status.ContainerStatuses[i].State = state
			}
		}
	}
}

func waiting(name, reason, message string) func(*corev1.Pod) {
	return with(name, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

// ended is a container that ended some seconds after the epoch.
func ended(name, reason string, code int32, seconds int, message string) func(*corev1.Pod) {
	return with(name, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: reason, ExitCode: code, Message: message,
		FinishedAt: metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second)),
	}})
}

func failed(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, message
		pod.Status.ContainerStatuses = nil
	}
}

func ending(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(epoch)) }

func disruption(reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason,
		})
	}
}

func limited(pod *corev1.Pod) {
	pod.Spec.Containers[1].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
}

const (
	agentC    = podspec.ContainerAgent
	functionC = podspec.ContainerFunction
)

func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		unready bool
		ended   bool
		code    string
		message string
		avoid   bool
	}{
		"both run":                     {pod: running()},
		"the containers are created":   {pod: running(waiting(agentC, "ContainerCreating", ""), waiting(functionC, "ContainerCreating", ""))},
		"nothing is known yet":         {pod: running(func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} })},
		"it is ending":                 {pod: running(ending)},
		"a node that is slow":          {pod: running(), unready: true},
		"a node that does not end it":  {pod: running(ending), unready: true, ended: true, code: v1alpha1.ReasonNodeLost, message: "node-1 is not ready", avoid: true},
		"an image that is not there":   {pod: running(waiting(functionC, "ErrImagePull", "manifest unknown")), ended: true, code: v1alpha1.ReasonImagePullFailed, message: `"app:1" of the function cannot be had: ErrImagePull: manifest unknown`},
		"the same, later":              {pod: running(waiting(functionC, "ImagePullBackOff", "Back-off")), ended: true, code: v1alpha1.ReasonImagePullFailed, message: "Back-off"},
		"an image without sense":       {pod: running(waiting(functionC, "InvalidImageName", "")), ended: true, code: v1alpha1.ReasonImagePullFailed, message: "InvalidImageName"},
		"an image that may not be had": {pod: running(waiting(functionC, "ErrImageNeverPull", "")), ended: true, code: v1alpha1.ReasonImagePullFailed, message: "ErrImageNeverPull"},
		"the agent's image":            {pod: running(waiting(agentC, "ErrImagePull", "denied")), ended: true, code: v1alpha1.ReasonImagePullFailed, message: `"agent:1" of the agent`},
		"a Secret is missing":          {pod: running(waiting(functionC, "CreateContainerConfigError", `secret "db" not found`)), ended: true, code: v1alpha1.ReasonConfigMissing, message: `secret "db" not found`},
		"a key is missing":             {pod: running(waiting(functionC, "CreateContainerConfigError", "couldn't find key a in ConfigMap shop/flags")), ended: true, code: v1alpha1.ReasonConfigMissing, message: "key a"},
		"it would be root":             {pod: running(waiting(functionC, "CreateContainerConfigError", "container has runAsNonRoot and image will run as root")), ended: true, code: v1alpha1.ReasonPodRefused, message: "would run as root"},
		"it cannot be created":         {pod: running(waiting(functionC, "CreateContainerError", "no such device")), ended: true, code: v1alpha1.ReasonPodRefused, message: "no such device"},
		"the kubelet tries again":      {pod: running(waiting(functionC, "CreateContainerError", "context deadline exceeded"))},
		"the API server is slow":       {pod: running(waiting(functionC, "CreateContainerConfigError", "failed to sync secret cache: timed out waiting for the condition"))},
		"out of memory":                {pod: running(limited, ended(functionC, "OOMKilled", 137, 1, "")), ended: true, code: v1alpha1.ReasonOutOfMemory, message: "limit of 64Mi"},
		"the node's memory":            {pod: running(ended(functionC, "OOMKilled", 137, 1, "")), ended: true, code: v1alpha1.ReasonOutOfMemory, message: "has no limit"},
		"the function exits":           {pod: running(ended(functionC, "Error", 3, 1, "")), ended: true, code: v1alpha1.ReasonFunctionExited, message: "exited with status 3"},
		"the function is done":         {pod: running(ended(functionC, "Completed", 0, 1, "")), ended: true, code: v1alpha1.ReasonFunctionExited, message: "exited with status 0"},
		"the function is killed":       {pod: running(ended(functionC, "Error", 143, 1, "")), ended: true, code: v1alpha1.ReasonFunctionExited, message: "killed by signal terminated"},
		"there is no program":          {pod: running(ended(functionC, "StartError", 128, 1, "exec: no such file")), ended: true, code: v1alpha1.ReasonFunctionExited, message: "cannot be run: exec: no such file"},
		"the agent leaves":             {pod: running(ended(agentC, "Completed", 0, 1, "")), ended: true, message: "the agent exited with status 0"},
		"the agent fails":              {pod: running(ended(agentC, "Error", 1, 1, "a\nno scheduler\n")), ended: true, message: "status 1: no scheduler"},
		"the agent, then the function": {pod: running(ended(agentC, "Completed", 0, 1, ""), ended(functionC, "Error", 143, 3, "")), ended: true, message: "the agent exited"},
		"the function, then the agent": {pod: running(ended(functionC, "Error", 2, 1, ""), ended(agentC, "Completed", 0, 3, "")), ended: true, code: v1alpha1.ReasonFunctionExited, message: "status 2"},
		"both, the agent as it should": {pod: running(ended(functionC, "Error", 143, 1, ""), ended(agentC, "Completed", 0, 1, "")), ended: true, message: "the agent exited"},
		"both, the agent badly":        {pod: running(ended(functionC, "Error", 2, 1, ""), ended(agentC, "Error", 1, 1, "")), ended: true, code: v1alpha1.ReasonFunctionExited, message: "status 2"},
		"the node was restarted":       {pod: running(ended(functionC, "ContainerStatusUnknown", 137, 1, "")), ended: true, code: v1alpha1.ReasonNodeLost, message: "lost the pod's containers", avoid: true},
		"the node is full":             {pod: running(failed("OutOfcpu", "Node didn't have enough resource: cpu")), ended: true, code: v1alpha1.ReasonNodeFull, message: "OutOfcpu: Node didn't"},
		"the node shuts down":          {pod: running(failed("NodeShutdown", "")), ended: true, code: v1alpha1.ReasonNodeRefused, message: "NodeShutdown", avoid: true},
		"the labels do not fit":        {pod: running(failed("NodeAffinity", "")), ended: true, code: v1alpha1.ReasonNodeRefused, message: "NodeAffinity", avoid: true},
		"the node needs its memory":    {pod: running(failed("Evicted", "The node was low on resource: memory.")), ended: true, code: v1alpha1.ReasonNodeRefused, message: "low on resource", avoid: true},
		"the function fills the disk":  {pod: running(failed("Evicted", `Usage of EmptyDir volume "tmp" exceeds the limit "512Mi".`)), ended: true, code: v1alpha1.ReasonNodeRefused, message: "512Mi"},
		"the node was lost":            {pod: running(failed("NodeLost", "")), ended: true, code: v1alpha1.ReasonNodeLost, message: "node-1 was lost", avoid: true},
		"it failed without a reason":   {pod: running(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), ended: true, message: "does not say why"},
	} {
		t.Run(name, func(t *testing.T) {
			v := classifyPod(c.pod, !c.unready)
			if v.ended != c.ended || v.code != c.code || v.avoidNode != c.avoid || !strings.Contains(v.reason, c.message) {
				t.Errorf("got %+v, want ended %v, code %q, words %q, avoid %v", v, c.ended, c.code, c.message, c.avoid)
			}
			if v.ended && v.reason == "" {
				t.Error("it says no reason")
			}
		})
	}
}

// mounting is a pod as the kubelet tells of it while its volumes are not mounted.
func mounting(volumes ...corev1.Volume) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		waiting(agentC, "ContainerCreating", "")(pod)
		waiting(functionC, "ContainerCreating", "")(pod)
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [agent function]"},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		}
		pod.Spec.Volumes = append([]corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}, volumes...)
	}
}

func secretVolume(name string, optional *bool) corev1.Volume {
	return corev1.Volume{Name: "mount-tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: optional}}}
}

func TestWhatAPodMayWaitForIsNamed(t *testing.T) {
	config := corev1.Volume{Name: "code", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "code-7"}}}}
	claim := corev1.Volume{Name: "mount-models", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "models"}}}
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		message []string
	}{
		"a Secret":               {running(mounting(secretVolume("partner-tls", nil))), []string{`the Secret "partner-tls" (the mount tls)`, "the node node-1", "the namespace shop", "reason=FailedMount"}},
		"code and a claim":       {running(mounting(config, claim)), []string{`the ConfigMap "code-7" (code.configMapRef), the PersistentVolumeClaim "models" (the mount models)`}},
		"what may be missing":    {running(mounting(secretVolume("partner-tls", new(true)))), nil},
		"no volume of its own":   {running(mounting()), nil},
		"it has its network":     {running(mounting(claim), func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }), nil},
		"a container has begun":  {running(mounting(claim), with(agentC, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})), nil},
		"the image is too large": {running(mounting(claim), waiting(functionC, "ErrImagePull", "")), nil},
		"no kubelet has seen it": {running(mounting(claim), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.pod.Labels = map[string]string{wellknown.LabelManagedBy: wellknown.ManagedBy, wellknown.LabelRevisionUID: "u"}
			got := unmounted(slimPod(c.pod))
			if c.message == nil && got != "" {
				t.Errorf("it waits for nothing, and said is %q", got)
			}
			for _, message := range c.message {
				if !strings.Contains(got, message) {
					t.Errorf("%q does not say %q", got, message)
				}
			}
		})
	}
}

func TestClassifyGone(t *testing.T) {
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		code    string
		message string
	}{
		"somebody deleted it":    {running(), v1alpha1.ReasonNodeLost, "not by Windlass"},
		"its node is gone":       {running(disruption("DeletionByPodGC")), v1alpha1.ReasonNodeLost, "node-1 was lost"},
		"its node was drained":   {running(disruption("EvictionByEvictionAPI")), v1alpha1.ReasonNodeRefused, "evicted from the node node-1"},
		"it had ended already":   {running(ended(functionC, "Error", 3, 1, "")), v1alpha1.ReasonFunctionExited, "status 3"},
		"its agent left already": {running(ended(agentC, "Completed", 0, 1, "")), "", "the agent"},
	} {
		t.Run(name, func(t *testing.T) {
			v := classifyGone(c.pod)
			if !v.ended || v.code != c.code || !strings.Contains(v.reason, c.message) {
				t.Errorf("got %+v, want code %q, words %q", v, c.code, c.message)
			}
		})
	}
}

// The kubelet reads the log of a container that fails, and no other.
func TestAnEmptyLogIsOneThatTheKubeletHasRead(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"it failed":                 {running(ended(functionC, "Error", 3, 1, "")), true},
		"it failed with words":      {running(ended(functionC, "Error", 3, 1, "KeyError")), false},
		"it was done":               {running(ended(functionC, "Completed", 0, 1, "")), false},
		"it could not be run":       {running(ended(functionC, "StartError", 128, 1, "")), false},
		"nothing is known":          {running(ended(agentC, "Error", 1, 1, "")), false},
		"it failed after its agent": {running(ended(agentC, "Error", 1, 1, ""), ended(functionC, "Error", 3, 2, "")), true},
		"it was never created":      {running(waiting(functionC, "CreateContainerError", "no such device")), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stopped := range []bool{false, true} {
				if got := classifyEnd(c.pod, classifyPod(c.pod, true), stopped); got.logEmpty != c.want {
					t.Errorf("stopped %t: %+v, want %t", stopped, got, c.want)
				}
			}
		})
	}
}

func TestTheLogTailComesWithTheStatus(t *testing.T) {
	lines := strings.Repeat("noise\n", 30) + "Traceback\nKeyError\n"
	v := classifyPod(running(ended(functionC, "Error", 1, 1, lines)), true)
	if n := len(v.logTail); n != logLines || v.logTail[n-1] != "KeyError" {
		t.Errorf("the tail is %q", v.logTail)
	}
	v = classifyPod(running(ended(functionC, "Error", 1, 1, "short\n")), true)
	if diff := cmp.Diff([]string{"short"}, v.logTail); diff != "" {
		t.Error(diff)
	}
}
