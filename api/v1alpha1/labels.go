package v1alpha1

// Labels and annotations of a function's pods.
const (
	// LabelFunction is the function's name, and LabelFunctionUID its UID.
	LabelFunction    = GroupName + "/function"
	LabelFunctionUID = GroupName + "/function-uid"
	// LabelCID is the instance's id within its function.
	LabelCID = GroupName + "/cid"
	// LabelRevision is Function.Revision of the function that the instance
	// was started for.
	LabelRevision = GroupName + "/revision"
	// LabelManagedBy has the value ManagedBy on everything that Windlass makes.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "windlass"

	// AnnotationCode holds a function's inline code, which the pod mounts.
	AnnotationCode = GroupName + "/code"

	// FinalizerDrain keeps a Function that is being deleted until its
	// instances have ended.
	FinalizerDrain = GroupName + "/drain"
)
