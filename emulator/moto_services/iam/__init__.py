"""moto's IAM: what it lacks of AWS's, and says too little of."""
