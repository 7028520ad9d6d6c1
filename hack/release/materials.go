package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	home       = "https://github.com/windlass-dev/windlass"
	unasserted = "NOASSERTION"
)

// materials writes which modules are in each program, for all platforms together, as SPDX.
func (r *release) materials(context.Context) error {
	contents := map[string]map[module]bool{}
	for _, p := range r.programs {
		info, err := buildinfo.ReadFile(p.file)
		if err != nil {
			return err
		}
		if contents[p.name] == nil {
			contents[p.name] = map[module]bool{}
		}
		for _, m := range modulesOf(info) {
			contents[p.name][m] = true
		}
	}
	content, err := documentOf(r.version, r.commit, r.at, contents)
	return r.write("windlass_"+r.version+".spdx.json", content, err)
}

// module is a Go module, or Go's standard library, as stdlib.
type module struct{ path, version string }

// modulesOf are the modules that a program is linked of, but its own.
func modulesOf(info *debug.BuildInfo) []module {
	found := []module{{"stdlib", info.GoVersion}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		found = append(found, module{m.Path, m.Version})
	}
	return found
}

func documentOf(version, commit string, at time.Time, contents map[string]map[module]bool) ([]byte, error) {
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: "windlass " + version,
		// It only has to be unique; nothing need be there.
		DocumentNamespace: home + "/spdx/" + version + "/" + commit,
		CreationInfo: &spdx.CreationInfo{
			Created:  at.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "windlass-hack-release"}},
		},
	}
	relate := func(a, kind, b string) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", a), RefB: common.MakeDocElementID("", b), Relationship: kind,
		})
	}
	all := map[module]bool{}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		id := elementID("Program", name, "")
		doc.Packages = append(doc.Packages, ours(id, name, version, commit))
		relate("DOCUMENT", common.TypeRelationshipDescribe, id)
		for _, m := range sorted(contents[name]) {
			relate(id, common.TypeRelationshipDependsOn, elementID("Module", m.path, m.version))
			all[m] = true
		}
	}
	for _, m := range sorted(all) {
		doc.Packages = append(doc.Packages, theirs(m))
	}
	var out bytes.Buffer
	err := spdxjson.Write(doc, &out, spdxjson.Indent(" "), spdxjson.EscapeHTML(false))
	return out.Bytes(), err
}

func sorted(modules map[module]bool) []module {
	return slices.SortedFunc(maps.Keys(modules), func(a, b module) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version))
	})
}

func ours(id, name, version, commit string) *spdx.Package {
	return &spdx.Package{
		PackageName: name, PackageSPDXIdentifier: common.ElementID(id), PackageVersion: version,
		PackageDownloadLocation: "git+" + home + "@" + commit, PackageHomePage: home,
		PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: unasserted,
		PrimaryPackagePurpose:     "APPLICATION",
		PackageExternalReferences: []*spdx.PackageExternalReference{purl("github.com/windlass-dev/windlass", version)},
	}
}

// theirs is a module of others. Nothing here reads its licence, so none is asserted.
func theirs(m module) *spdx.Package {
	return &spdx.Package{
		PackageName: m.path, PackageSPDXIdentifier: common.ElementID(elementID("Module", m.path, m.version)), PackageVersion: m.version,
		PackageDownloadLocation: unasserted, PackageLicenseConcluded: unasserted, PackageLicenseDeclared: unasserted,
		PackageCopyrightText: unasserted, PrimaryPackagePurpose: "LIBRARY",
		PackageExternalReferences: []*spdx.PackageExternalReference{purl(m.path, m.version)},
	}
}

func purl(path, version string) *spdx.PackageExternalReference {
	if path == "stdlib" {
		version = strings.TrimPrefix(version, "go")
	}
	return &spdx.PackageExternalReference{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
	}
}

var unusual = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// elementID names an element within the document; SPDX knows few characters.
func elementID(kind, name, version string) string {
	return unusual.ReplaceAllString(strings.TrimSuffix(kind+"-"+name+"-"+version, "-"), "-")
}
