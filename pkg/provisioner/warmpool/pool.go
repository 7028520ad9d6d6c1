package warmpool

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// MaxTimeout is the longest timeout of a function that can use a spare instance: the grace
// period of a pod is fixed before its function is known.
const MaxTimeout = 15 * time.Minute

// uidPrefix begins no UID of Kubernetes.
const uidPrefix = "pool:"

// Pool names a warm pool, or one scheduler's part of it.
type Pool struct {
	Scheduler string
	Namespace string
	// Runtime is the name of the ClusterRuntime, and Name that of the pool within it.
	Runtime, Name string
}

// UID stands for the UID of a function in the names of the pool's instances.
func (p Pool) UID() string {
	return uidPrefix + p.Scheduler + "/" + p.Namespace + "/" + p.Runtime + "/" + p.Name
}

// PoolOf returns the pool with that UID; false if the UID belongs to a function.
func PoolOf(uid string) (Pool, bool) {
	rest, found := strings.CutPrefix(uid, uidPrefix)
	parts := strings.Split(rest, "/")
	if !found || len(parts) != 4 {
		return Pool{}, false
	}
	return Pool{Scheduler: parts[0], Namespace: parts[1], Runtime: parts[2], Name: parts[3]}, true
}

// PoolFunction is the function that stands for a pool until its instances are assigned. Its
// Revision changes when they have to be replaced. The ClusterRuntime must have that pool.
func PoolFunction(p Pool, rt *v1alpha1.ClusterRuntime) *v1alpha1.Function {
	f := &v1alpha1.Function{}
	// The name becomes that of pods, whose hostname has no dots.
	f.Namespace, f.Name, f.UID = p.Namespace, "windlass-"+strings.ReplaceAll(p.Runtime, ".", "-")+"-spare", types.UID(p.UID())
	f.Spec.Template.RuntimeRef.Name = v1alpha1.RuntimeName(p.Runtime)
	f.Spec.Template.Protocol = v1alpha1.ProtocolLambdaRuntime
	// They are the Runtime's, and not what runs, but they belong to the revision.
	f.Spec.Template.Image, f.Spec.Template.Command, f.Spec.Template.Env = rt.Spec.Image, rt.Spec.Command, rt.Spec.Env
	f.Spec.Template.Resources = *rt.Spec.Pool(p.Name).Resources.DeepCopy()
	f.Spec.Template.Timeout = v1alpha1.Duration{Duration: MaxTimeout}
	v1alpha1.Default(f)
	return f
}
