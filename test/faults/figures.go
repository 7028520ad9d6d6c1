package main

import "context"

func (r *runner) figures(context.Context) (int, error) { return 0, nil }
