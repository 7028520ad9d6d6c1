package v1alpha1

import "time"

// StartUntil is until when one instance at least is kept, so that it is known
// whether one starts; zero if nobody has asked for that.
func (f *Function) StartUntil() time.Time {
	until, err := time.Parse(time.RFC3339, f.Annotations[AnnotationStartUntil])
	if err != nil {
		return time.Time{}
	}
	return until
}

// AskStart asks for one instance until then, in whole seconds.
func (f *Function) AskStart(until time.Time) {
	if f.Annotations == nil {
		f.Annotations = make(map[string]string)
	}
	f.Annotations[AnnotationStartUntil] = until.UTC().Format(time.RFC3339)
}

// WithoutStart is the Function without that wish, which its author did not write; the
// same if there is none.
func (f *Function) WithoutStart() *Function {
	if _, asked := f.Annotations[AnnotationStartUntil]; !asked {
		return f
	}
	f = f.DeepCopy()
	if delete(f.Annotations, AnnotationStartUntil); len(f.Annotations) == 0 {
		f.Annotations = nil
	}
	return f
}
