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
	return beyond(sizes(spec, s), lengths(spec, s))
}

// validateRuntimeBounds is validateBounds for runtimes.
func validateRuntimeBounds(spec *field.Path, r *ClusterRuntimeSpec) field.ErrorList {
	return beyond(runtimeSizes(spec, r), runtimeLengths(spec, r))
}

// beyond says which sizes of lists and maps, and which lengths of texts, are too large.
func beyond(sizes, lengths []quantum) field.ErrorList {
	var errs field.ErrorList
	for _, q := range sizes {
		if q.n > q.most {
			errs = append(errs, field.TooMany(q.at, q.n, q.most))
		}
	}
	for _, q := range lengths {
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
	t, at := &s.Template, spec.Child("template")
	all := programLengths(at, t.Image, t.Command, t.Env)
	add := func(at *field.Path, text string, most int) { all = append(all, length(at, text, most)) }
	add(at.Child("handler"), t.Handler, 512)
	for i, arg := range t.Args {
		add(at.Child("args").Index(i), arg, 32768)
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

// programLengths are those of what functions and runtimes have both.
func programLengths(at *field.Path, image string, command []string, env []EnvVar) []quantum {
	all := []quantum{length(at.Child("image"), image, 1024)}
	for i, arg := range command {
		all = append(all, length(at.Child("command").Index(i), arg, 32768))
	}
	for i, v := range env {
		at := at.Child("env").Index(i)
		all = append(all, length(at.Child("name"), v.Name, 256), length(at.Child("value"), v.Value, 131072))
	}
	return all
}

func length(at *field.Path, text string, most int) quantum {
	return quantum{at, utf8.RuneCountInString(text), most}
}

// runtimeSizes are those of lists.
func runtimeSizes(spec *field.Path, r *ClusterRuntimeSpec) []quantum {
	return []quantum{
		{spec.Child("command"), len(r.Command), 64},
		{spec.Child("env"), len(r.Env), 256},
	}
}

// runtimeLengths are those of texts, in characters.
func runtimeLengths(spec *field.Path, r *ClusterRuntimeSpec) []quantum {
	all := programLengths(spec, r.Image, r.Command, r.Env)
	for i := range r.WarmPools {
		selector := r.WarmPools[i].NamespaceSelector
		if selector == nil {
			continue
		}
		expressions := spec.Child("warmPools").Index(i).Child("namespaceSelector", "matchExpressions")
		for j, requirement := range selector.MatchExpressions {
			for k, value := range requirement.Values {
				all = append(all, length(expressions.Index(j).Child("values").Index(k), value, 63))
			}
		}
	}
	return all
}
