package main

import "go/ast"

// interfaces finds the product's interfaces, so that those that are embedded
// in others can be counted.
type interfaces map[string]*contract

// contract is an interface and the file that it is in.
type contract struct {
	file source
	spec *ast.InterfaceType
}

func findInterfaces(files []source) interfaces {
	all := interfaces{}
	for _, file := range files {
		file.eachType(func(spec *ast.TypeSpec) {
			if i, ok := spec.Type.(*ast.InterfaceType); ok {
				all[module+file.pkg+"."+spec.Name.Name] = &contract{file, i}
			}
		})
	}
	return all
}

// methods counts an interface's methods, and those of the product's interfaces
// that it embeds.
func (all interfaces) methods(c *contract) int {
	n := 0
	for _, field := range c.spec.Methods.List {
		n += len(field.Names)
		if len(field.Names) > 0 {
			continue
		}
		pkg, name := c.file.nameOf(field.Type)
		if embedded := all[pkg+"."+name]; embedded != nil {
			n += all.methods(embedded)
		}
	}
	return n
}
