package v1alpha1

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// quantum is how much of something a field holds, and the most that the API server takes.
type quantum struct {
	at      *field.Path
	n, most int
}

// validateBounds checks how much fields hold. What the API server refuses for its size, local mode
// refuses as well, so that what runs there can be applied to a cluster.
func validateBounds(spec *field.Path, s *FunctionSpec) field.ErrorList {
	var errs field.ErrorList
	for _, q := range sizes(spec, s) {
		if q.n > q.most {
			errs = append(errs, field.TooMany(q.at, q.n, q.most))
		}
	}
	for _, q := range lengths(spec, s) {
		if q.n > q.most {
			errs = append(errs, field.TooLong(q.at, "", q.most))
		}
	}
	return errs
}

// sizes are those of lists and maps.
func sizes(spec *field.Path, s *FunctionSpec) []quantum {
	t, at := &s.Template, spec.Child("template")
	return []quantum{
		{at.Child("command"), len(t.Command), 64},
		{at.Child("args"), len(t.Args), 256},
		{at.Child("env"), len(t.Env), 256},
		{at.Child("envFrom"), len(t.EnvFrom), 64},
		{at.Child("imagePullSecrets"), len(t.ImagePullSecrets), 32},
		{at.Child("placement", "nodeSelector"), len(t.Placement.NodeSelector), 64},
		{at.Child("placement", "tolerations"), len(t.Placement.Tolerations), 64},
		{spec.Child("traffic"), len(s.Traffic), 16},
	}
}

// lengths are those of texts, in characters.
func lengths(spec *field.Path, s *FunctionSpec) []quantum {
	var all []quantum
	add := func(at *field.Path, text string, most int) {
		all = append(all, quantum{at, utf8.RuneCountInString(text), most})
	}
	t, at := &s.Template, spec.Child("template")
	add(at.Child("image"), t.Image, 1024)
	add(at.Child("handler"), t.Handler, 512)
	for i, arg := range t.Command {
		add(at.Child("command").Index(i), arg, 32768)
	}
	for i, arg := range t.Args {
		add(at.Child("args").Index(i), arg, 32768)
	}
	for i, v := range t.Env {
		add(at.Child("env").Index(i).Child("name"), v.Name, 256)
		add(at.Child("env").Index(i).Child("value"), v.Value, 131072)
	}
	for i, source := range t.EnvFrom {
		add(at.Child("envFrom").Index(i).Child("prefix"), source.Prefix, 128)
	}
	for i, w := range s.Scaling.Windows {
		add(spec.Child("scaling", "windows").Index(i).Child("start"), w.Start, 128)
	}
	for i, target := range s.Traffic {
		add(spec.Child("traffic").Index(i).Child("revisionName"), target.RevisionName, 253)
	}
	return all
}
