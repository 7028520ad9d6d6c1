package main

func machineRows() []row { return nil }
