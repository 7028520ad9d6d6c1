package v1alpha1

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of mounts, inclusive.
const (
	// MaxMounts is how many mounts a function may have.
	MaxMounts = 10
	// MaxMountName is the longest name of one, and MaxMountPath the longest path, in bytes.
	MaxMountName = 50
	MaxMountPath = 256
)

// ReservedMountPaths are the folders in a function's container that Windlass mounts, that
// the kubelet mounts for it, or that belong to the system. Most images have a link from
// /var/run to /run.
var ReservedMountPaths = []string{
	"/tmp", "/var/task", "/var/run/secrets/kubernetes.io", "/var/run/secrets/windlass.dev",
	"/run/secrets/kubernetes.io", "/run/secrets/windlass.dev", "/dev", "/proc", "/sys",
}

var (
	mountPathPattern = regexp.MustCompile(`^(/[^/:]+)+$`)
	dotsPattern      = regexp.MustCompile(`/[.][.]?(/|$)`)
	upPattern        = regexp.MustCompile(`(^|/)[.][.](/|$)`)
)

func validateMounts(at *field.Path, mounts []Mount) field.ErrorList {
	var errs field.ErrorList
	if len(mounts) > MaxMounts {
		errs = append(errs, field.TooMany(at, len(mounts), MaxMounts))
	}
	seen := sets.New[string]()
	for i := range mounts {
		m, at := &mounts[i], at.Index(i)
		errs = append(errs, validateLabel(at.Child("name"), m.Name, "models")...)
		if len(m.Name) > MaxMountName {
			errs = append(errs, field.TooLong(at.Child("name"), m.Name, MaxMountName))
		}
		if seen.Has(m.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, "occurs twice; remove one of the two or rename it"))
		}
		seen.Insert(m.Name)
		errs = append(errs, validateMountPath(at.Child("mountPath"), m.MountPath)...)
		for _, before := range mounts[:i] {
			if m.MountPath != "" && before.MountPath != "" && overlap(before.MountPath, m.MountPath) {
				errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, fmt.Sprintf(
					"is the same as %s of %s, or one is below the other; take paths apart, for example /etc/app and /models", before.MountPath, before.Name)))
			}
		}
		errs = append(errs, validateSubPath(at.Child("subPath"), m.SubPath)...)
		errs = append(errs, validateMountSource(at, m)...)
	}
	return errs
}

func validateMountPath(at *field.Path, p string) field.ErrorList {
	switch {
	case p == "":
		return field.ErrorList{field.Required(at, "write for example mountPath: /etc/app")}
	case len(p) > MaxMountPath:
		return field.ErrorList{field.TooLong(at, p, MaxMountPath)}
	case !mountPathPattern.MatchString(p) || dotsPattern.MatchString(p) || strings.IndexByte(p, 0) >= 0:
		example := path.Clean("/" + strings.ReplaceAll(p, ":", "-"))
		if strings.IndexByte(p, 0) >= 0 || example == "/" {
			example = "/etc/app"
		}
		return field.ErrorList{field.Invalid(at, p, "must be an absolute path without ':', '.', '..' and a slash at its end; write for example "+example)}
	}
	for _, reserved := range ReservedMountPaths {
		if overlap(reserved, p) {
			return field.ErrorList{field.Forbidden(at, fmt.Sprintf("%s is, contains or is below %s, which belongs to Windlass or the system; "+
				"take another one, for example /etc/app", p, reserved))}
		}
	}
	return nil
}

// overlap says whether one path is the other, or below it.
func overlap(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

func validateSubPath(at *field.Path, p string) field.ErrorList {
	if len(p) > MaxMountPath {
		return field.ErrorList{field.TooLong(at, p, MaxMountPath)}
	}
	if strings.HasPrefix(p, "/") || upPattern.MatchString(p) || strings.IndexByte(p, 0) >= 0 {
		return field.ErrorList{field.Invalid(at, p, "must be a path within the volume, without '..' and a slash at its beginning; "+
			"write for example "+cmp.Or(strings.Trim(path.Clean("/"+strings.ReplaceAll(p, "\x00", "")), "/"), "app/settings.json"))}
	}
	return nil
}

func validateMountSource(at *field.Path, m *Mount) field.ErrorList {
	var errs field.ErrorList
	given := 0
	if m.Secret != nil {
		given++
		errs = append(errs, validateObjectName(at.Child("secret", "secretName"), m.Secret.SecretName, "a Secret", "my-secret")...)
	}
	if m.ConfigMap != nil {
		given++
		errs = append(errs, validateObjectName(at.Child("configMap", "name"), m.ConfigMap.Name, "a ConfigMap", "my-settings")...)
	}
	if m.PersistentVolumeClaim != nil {
		given++
		errs = append(errs, validateObjectName(at.Child("persistentVolumeClaim", "claimName"), m.PersistentVolumeClaim.ClaimName, "a PersistentVolumeClaim", "my-data")...)
	}
	if e := m.EmptyDir; e != nil {
		given++
		if e.Medium != "" && e.Medium != corev1.StorageMediumMemory {
			errs = append(errs, field.NotSupported(at.Child("emptyDir", "medium"), e.Medium, []corev1.StorageMedium{corev1.StorageMediumMemory}))
		}
		if e.SizeLimit != nil && strings.ContainsAny(e.SizeLimit.String(), "-eE") {
			errs = append(errs, field.Invalid(at.Child("emptyDir", "sizeLimit"), e.SizeLimit.String(),
				"must be a quantity of 0 or more without an exponent; write for example 1Gi, which are 2^30 bytes"))
		}
	}
	if given != 1 {
		errs = append(errs, field.Forbidden(at, "needs exactly one of secret, configMap, persistentVolumeClaim and emptyDir; "+
			"write for example configMap: {name: my-settings}"))
	}
	return errs
}

// validateObjectName is validateName for a field of another name.
func validateObjectName(at *field.Path, name, what, example string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "write for example "+lastName(at)+": "+example)}
	}
	return validateName(at, name, what, example)
}

// validateLocalMounts says that local mode has none: its functions see the machine's own
// files.
func validateLocalMounts(at *field.Path, mounts []Mount) field.ErrorList {
	if len(mounts) == 0 {
		return nil
	}
	names := make([]string, len(mounts))
	for i := range mounts {
		names[i] = mounts[i].Name
	}
	return field.ErrorList{field.Invalid(at, strings.Join(slices.Compact(names), ", "),
		"need a cluster: here a function sees the files of this machine; remove mounts, and give it their path, for example in env")}
}
