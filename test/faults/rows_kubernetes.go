package main

func kubernetesRows() []row { return nil }
