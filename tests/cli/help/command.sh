tare help version >a && tare version -h >b && cmp a b && tare version --json -h >c && cmp a c
